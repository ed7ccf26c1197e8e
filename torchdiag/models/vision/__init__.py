"""Models of computer vision: classification, detection, segmentation, generation."""
