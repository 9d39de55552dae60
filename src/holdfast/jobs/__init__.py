"""Compaction in the background: in this process, or on a queue that many processes share (W2, W12)."""

from .background import Background
from .bullmq_queue import BullMQQueue
from .bullmq_worker import BullMQWorker
from .in_process import InProcessQueue
from .job import Job, JobFailed, Queue, QueueError
from .settings import QueueSettings
from .sweep import Sweep, SweepingWorker
from .tally import Tally
from .work import Done, Work

__all__ = [
    "Background",
    "BullMQQueue",
    "BullMQWorker",
    "Done",
    "InProcessQueue",
    "Job",
    "JobFailed",
    "Queue",
    "QueueError",
    "QueueSettings",
    "Sweep",
    "SweepingWorker",
    "Tally",
    "Work",
]
