"""What every pass needs: its base class, registry, pipelines, context, checks between passes, documentation."""
