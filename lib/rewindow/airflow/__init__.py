"""Airflow integration: `dags.make_dags` for a whole project, `operators.RewindowOperator` and a sensor for custom DAGs.

Nothing here imports Spark. Only the modules that need Airflow import it, so all other modules can be used and tested without it.
"""
