"""What both processes of an emulated device read and write."""
