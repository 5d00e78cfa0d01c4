package image

// What the steps do, for the comparison with torchvision's functions.
var (
	Rotation         = rotationMatrix
	HorizontalFlip   = (*Image).flipHorizontal
	VerticalFlip     = (*Image).flipVertical
	Affine           = (*Image).applyAffine
	ResizePart       = (*Image).resizePart
	AdjustBrightness = (*Image).adjustBrightness
	AdjustContrast   = (*Image).adjustContrast
	AdjustSaturation = (*Image).adjustSaturation
	AdjustHue        = (*Image).adjustHue
)
