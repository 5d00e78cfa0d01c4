// Package image decodes images and transforms them, with the same pixels as torchvision makes of
// Pillow's images.
//
//	train := image.Pipeline{
//		image.RandomResizedCrop{H: 224, W: 224},
//		image.RandomHorizontalFlip(0.5),
//		image.ColorJitter{Brightness: 0.4, Contrast: 0.4},
//		image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet},
//	}
//
// A step is a value, so a pipeline can be sent to worker processes. A random step draws from the
// generator that its caller passes, never from a global one. datasets.ImageFolder passes each
// sample a generator of its own, so the same seed, epoch and sample make the same pixels.
//
// An image is planes of bytes, one for each channel, until a Normalize makes float32 numbers of
// them. The last step writes to the row of the batch.
//
// The trap: in sizes the height comes before the width, as in torch; Pillow has the width first.
package image
