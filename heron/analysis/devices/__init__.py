"""Questions about programs of several devices: who exchanges with whom, and which values differ between devices."""
