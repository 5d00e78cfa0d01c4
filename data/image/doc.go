// Package image decodes and transforms images. The pixels are the same as from torchvision with
// Pillow.
//
//	train := image.Pipeline{
//		image.RandomResizedCrop{H: 224, W: 224},
//		image.RandomHorizontalFlip(0.5),
//		image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet},
//	}
//	file, err := os.ReadFile("cat.jpg")
//	if err != nil {
//		return err
//	}
//	var im image.Image
//	if err := im.Decode(file, 3); err != nil {
//		return err
//	}
//	if err := train.Apply(&im, rand.New(rand.NewPCG(1, 2))); err != nil {
//		return err
//	}
//	fmt.Println(im.C, im.H, im.W, im.Numbers[0])
//
// Start with [Image.Decode], [Pipeline.Apply] and [NewImageFolder] of package datasets.
//
// A [Step] is a value, so a [Pipeline] can be sent to worker processes. A random step draws from
// the generator passed by its caller, never from a global one. datasets.ImageFolder passes a
// separate generator for each sample, so the pixels depend only on the seed, the epoch and the
// sample.
//
// An image consists of planes of bytes, one for each channel, until a [Normalize] converts them to
// float32. The last step writes directly into the row of the batch.
//
// Sizes are given as height, then width, as in torch. Note that Pillow uses the opposite order.
//
// [NewImageFolder]: https://pkg.go.dev/github.com/shoal-mp/shoal/data/datasets#NewImageFolder
package image
