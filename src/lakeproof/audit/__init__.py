"""A recorded table history → findings: commits that a policy would have refused, and what lies wrong in the table."""

from lakeproof.audit.audit import Audit, audit, audit_raw
from lakeproof.audit.deep import Depth
from lakeproof.audit.findings import Finding

__all__ = ["Audit", "Depth", "Finding", "audit", "audit_raw"]
