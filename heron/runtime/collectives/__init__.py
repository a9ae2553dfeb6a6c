"""Programs on several devices: how devices meet, the threads that run them, and what is said when one fails."""
