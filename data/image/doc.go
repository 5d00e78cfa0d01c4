// Package image decodes images and changes them, as torchvision does to those of Pillow, and to the
// same pixels.
//
//	train := image.Pipeline{
//		image.RandomResizedCrop{H: 224, W: 224},
//		image.RandomHorizontalFlip(0.5),
//		image.ColorJitter{Brightness: 0.4, Contrast: 0.4},
//		image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet},
//	}
//
// A step is a value, so that a pipeline goes to workers that are processes. What is random in it is
// drawn from a generator that it is given, never from a global one: datasets.ImageFolder gives each
// sample its own, so the same seed, epoch and sample make the same pixels.
//
// An image is planes of bytes, channel by channel, until a Normalize makes it float32. The last
// step writes to the row of the batch.
//
// The trap: sizes are height before width, as in torch, and not as in Pillow.
package image
