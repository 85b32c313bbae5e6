"""The jobs of this project: each module builds one topology; `conf/jobs` says what it reads and writes."""
