// Package other decodes images that are neither JPEG nor PNG: WEBP, TIFF, BMP, PPM and PGM, all
// formats that torchvision's ImageFolder reads. The pixels equal Pillow's.
package other
