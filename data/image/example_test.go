package image_test

import (
	"bytes"
	"fmt"
	stdimage "image"
	"image/color"
	"image/png"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image"
)

// encoded is a PNG of 4×6 pixels whose left half is white.
func encoded() []byte {
	im := stdimage.NewGray(stdimage.Rect(0, 0, 6, 4))
	for y := range 4 {
		for x := range 3 {
			im.SetGray(x, y, color.Gray{255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// after decodes the image, applies a step and prints what is there then.
func after(step image.Step) {
	var im image.Image
	if err := im.Decode(encoded(), 1); err != nil {
		fmt.Println(err)
		return
	}
	if err := step.Apply(&im, rand.New(rand.NewPCG(1, 2))); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(im.C, im.H, im.W)
	if im.Pix != nil {
		fmt.Println("", im.Pix[:im.W])
	} else {
		fmt.Println("", im.Numbers[:im.W])
	}
}

// What a training script does with an image. A Pipeline is a Step itself.
func ExamplePipeline() {
	after(image.Pipeline{
		image.RandomResizedCrop{H: 4, W: 4},
		image.RandomHorizontalFlip(0.5),
		image.Normalize{Mean: []float32{0.5}, Std: []float32{0.5}},
	})
	// Output: 1 4 4 [1 -1 -1 -1]
}

func ExampleImage() {
	var im image.Image // decoded into again and again
	if err := im.Decode(encoded(), 3); err != nil {
		fmt.Println(err)
		return
	}
	im.Crop(0, 2, 4, 3)
	fmt.Println(im.C, im.H, im.W, im.Pix[:im.W])
	// Output: 3 4 3 [255 0 0]
}

func ExampleResize() {
	after(image.Resize{H: 2, W: 3, Filter: image.Nearest})
	// Output: 1 2 3 [255 0 0]
}

func ExampleCenterCrop() {
	after(image.CenterCrop(2, 2))
	// Output: 1 2 2 [255 0]
}

func ExamplePad() {
	after(image.Pad{Left: 1, Right: 1, Mode: image.Constant, Fill: []uint8{7}})
	// Output: 1 4 8 [7 255 255 255 0 0 0 7]
}

func ExampleNormalize() {
	after(image.Normalize{Mean: []float32{0.5}, Std: []float32{0.5}})
	// Output: 1 4 6 [1 1 1 -1 -1 -1]
}

func ExampleGrayscale() {
	after(image.Grayscale(3))
	// Output: 3 4 6 [255 255 255 0 0 0]
}

func ExampleColorJitter() {
	after(image.ColorJitter{}) // nothing is asked for
	// Output: 1 4 6 [255 255 255 0 0 0]
}

func ExampleRandomHorizontalFlip() {
	after(image.RandomHorizontalFlip(1))
	// Output: 1 4 6 [0 0 0 255 255 255]
}

func ExampleRandomVerticalFlip() {
	after(image.RandomVerticalFlip(1))
	// Output: 1 4 6 [255 255 255 0 0 0]
}

func ExampleRandomApply() {
	after(image.RandomApply(1, image.RandomHorizontalFlip(1)))
	// Output: 1 4 6 [0 0 0 255 255 255]
}

func ExampleRandomCrop() {
	after(image.RandomCrop{H: 4, W: 6}) // no padding: there is one place only
	// Output: 1 4 6 [255 255 255 0 0 0]
}

func ExampleRandomResizedCrop() {
	after(image.RandomResizedCrop{H: 2, W: 3, Scale: [2]float64{1, 1}, Ratio: [2]float64{1.5, 1.5}})
	// Output: 1 2 3 [255 128 0]
}

func ExampleRandomAffine() {
	after(image.RandomAffine{Scale: [2]float64{1, 1}, Fill: 7}) // neither turned nor moved
	// Output: 1 4 6 [255 255 255 0 0 0]
}

func ExampleRandomErasing() {
	after(image.RandomErasing{P: 1, Scale: [2]float64{0.5, 0.5}, Ratio: [2]float64{1, 1}, Value: 9})
	// Output: 1 4 6 [9 9 9 0 0 0]
}
