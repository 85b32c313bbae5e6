"""rewindow in Airflow: `dags.make_dags` for a whole project, `operators.RewindowOperator` and the sensor for DAGs of one's own.

Nothing here imports Spark. What needs Airflow imports it in its own module, so the rest works, and is tested, without.
"""
