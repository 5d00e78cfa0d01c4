// Package other decodes images that are neither JPEG nor PNG: WEBP, TIFF, BMP, PPM and PGM, all of
// which torchvision's ImageFolder reads. The pixels are Pillow's.
package other
