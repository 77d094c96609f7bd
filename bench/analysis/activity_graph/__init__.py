"""Critical participation: the share of each activity in the critical paths of a trace, window by window.

After Hoffmann et al., "SnailTrail: Generalizing Critical Paths for Online Analysis of Distributed Dataflows" (NSDI
2018). The numbers of definitions, equations and algorithms in this package are theirs.

`events` holds a trace in columns, `timelines` makes the timeline of each worker complete, `snapshots` cuts the
timelines into windows whose nodes and edges are the program activity graph, `path_counts` counts the paths, and
`participation` puts them together; `summaries` adds up what came out.
"""
