"""Groups of the newer protocols: KIP-848 consumer groups, share groups and streams groups.

Their whole state stands in ``__consumer_offsets``, so the mirror of it is exact from the topic alone; the
logs add who left how, and heartbeats.  Doors: ``parts`` (what a record holds), ``writes`` (records of one
write of the coordinator, told apart), ``group`` (what observations do to such a group).
"""
