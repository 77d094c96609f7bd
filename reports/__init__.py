"""Reports of a run, made from its folder alone: data, figures, file formats, and a live page."""
