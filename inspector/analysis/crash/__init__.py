"""Why a job died or stands in a signal handler: the thread that has the signal, what was printed, likely causes."""
