package datasets_test

import (
	"bytes"
	"context"
	"errors"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// drawing is a picture that i tells apart.
func drawing(i, h, w int) stdimage.Image {
	im := stdimage.NewRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			im.Set(x, y, color.RGBA{uint8(40*i + x), uint8(y * 5), uint8(x * y), 255})
		}
	}
	return im
}

// encoded is a file of a drawing.
func encoded(t testing.TB, kind string, im stdimage.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	err := png.Encode(&b, im)
	if kind != "png" {
		b.Reset()
		err = jpeg.Encode(&b, im, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// zoo is a folder of seven images of 20×24 pixels in three classes.
func zoo(t testing.TB) string {
	root := t.TempDir()
	for i, name := range []string{"bee/2.png", "bee/10.PNG", "bee/a.txt", "cat/x/1.jpg", "cat/b.jpeg",
		"cat/a/z.png", "ant/0.png", "ant/1.JPG", "notes.txt"} {
		kind := "jpg"
		if filepath.Ext(name) == ".png" || filepath.Ext(name) == ".PNG" {
			kind = "png"
		}
		put(t, filepath.Join(root, name), encoded(t, kind, drawing(i, 20, 24)))
	}
	return root
}

func TestImageFolder_HasTheOrderOfTorchvision(t *testing.T) {
	d, err := datasets.NewImageFolder(zoo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var got []string
	for p, err := range recordsOf(d.Paths) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(p))
	}
	// What datasets.ImageFolder(root).samples has, of torchvision 0.29.
	want := []string{"ant/0.png", "ant/1.JPG", "bee/10.PNG", "bee/2.png", "cat/b.jpeg", "cat/a/z.png", "cat/x/1.jpg"}
	if !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if want := []string{"ant", "bee", "cat"}; !slices.Equal(d.Classes, want) {
		t.Errorf("classes %q, want %q", d.Classes, want)
	}
	if got, want := tensor.Data[int64](d.Labels), []int64{0, 0, 1, 1, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

func TestImageFolder_WithoutImagesIsAnError(t *testing.T) {
	empty := t.TempDir()
	if _, err := datasets.NewImageFolder(empty); !errors.Is(err, datasets.ErrNoImages) {
		t.Errorf("without classes: %v", err)
	}
	put(t, filepath.Join(empty, "class", "a.txt"), nil)
	if _, err := datasets.NewImageFolder(empty); !errors.Is(err, datasets.ErrNoImages) {
		t.Errorf("a class without images: %v", err)
	}
	if _, err := datasets.NewImageFolder(filepath.Join(empty, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// augment is steps with much that is random.
var augment = []image.Step{
	image.RandomResizedCrop{H: 16, W: 12}, image.RandomHorizontalFlip(0.5), image.RandomVerticalFlip(0.5),
	image.RandomAffine{Degrees: 20, Translate: [2]float64{0.1, 0.1}, Scale: [2]float64{0.8, 1.2},
		Shear: [2]float64{5, 5}},
	image.ColorJitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1},
	image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet}, image.RandomErasing{P: 0.5},
}

// epoch is all batches of an epoch as text.
func epoch(t *testing.T, d data.Dataset, opts data.Options, n int) string {
	t.Helper()
	l := data.NewLoader(d, opts)
	defer l.Close()
	var all []byte
	for b, err := range l.Epoch(t.Context(), n) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range b {
			all = append(all, tensor.Bytes(f)...)
		}
		if opts.Shared {
			for _, f := range b {
				f.Close()
			}
		}
	}
	return string(all)
}

func TestImageFolder_IsTheSameInAllWorkers(t *testing.T) {
	d, err := datasets.NewImageFolder(zoo(t), augment...)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	opts := data.Options{BatchSize: 3, Shuffle: true, Seed: 7}
	want := epoch(t, d, opts, 0)
	if epoch(t, d, opts, 1) == want {
		t.Error("two epochs have the same pixels")
	}
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		for _, workers := range []int{1, 2, 3} {
			opts.Kind, opts.Workers = kind, workers
			if epoch(t, d, opts, 0) != want {
				t.Errorf("%d workers of kind %d make other pixels than none", workers, kind)
			}
		}
	}
}

func TestImageFolder_GetAndGatherMakeTheSameImages(t *testing.T) {
	for _, steps := range [][]image.Step{nil, {image.Resize{H: 8, W: 9}},
		{image.RandomCrop{H: 10, W: 10}, image.RandomHorizontalFlip(0.5)}, augment} {
		d, err := datasets.NewImageFolder(zoo(t), steps...)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx := data.WithSample(t.Context(), data.Info{Seed: 3, Epoch: 4}, 0)
		for _, channels := range []int{1, 3} {
			if d.Channels = channels; channels == 1 && len(steps) == len(augment) {
				continue // normalized by three numbers
			}
			s, err := d.Get(ctx, 5)
			if err != nil {
				t.Fatal(err)
			}
			rows := data.Batch{tensor.Empty(s[0].DType(), append([]int{2}, s[0].Shape()...)...),
				tensor.Empty(tensor.Int64, 2)}
			if err := d.Gather(ctx, []int{0, 5}, rows); err != nil {
				t.Fatal(err)
			}
			if got := rows[0].Select(0, 1); !bytes.Equal(tensor.Bytes(got.Clone()), tensor.Bytes(s[0])) {
				t.Errorf("%v: Gather and Get differ", steps)
			}
			if got := tensor.Data[int64](rows[1]); !slices.Equal(got, []int64{0, 2}) {
				t.Errorf("labels %v", got)
			}
		}
	}
}

func TestImageFolder_NamesADamagedImage(t *testing.T) {
	root := zoo(t)
	good, err := os.ReadFile(filepath.Join(root, "cat/b.jpeg"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := datasets.NewImageFolder(root, image.Resize{H: 8, W: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		file []byte
		want error
	}{
		{good[:len(good)/2], image.ErrTruncated},
		{nil, image.ErrFormat},
		{[]byte("hello"), image.ErrFormat},
		{append([]byte{0xFF, 0xD8, 0xFF, 0xDB, 0, 3}, good[20:]...), image.ErrCorrupt},
	} {
		put(t, filepath.Join(root, "cat/b.jpeg"), c.file)
		for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
			l := data.NewLoader(d, data.Options{BatchSize: 7, Workers: 1, Kind: kind})
			var last error
			for _, err := range l.Batches(t.Context()) {
				last = err
			}
			l.Close()
			var file *encoding.FileError
			if !errors.As(last, &file) || !errors.Is(last, c.want) ||
				file.Path != filepath.Join(root, "cat/b.jpeg") || file.Offset > int64(len(c.file)) {
				t.Errorf("%.10q in workers of kind %d: %v, want a FileError that wraps %v", c.file, kind, last, c.want)
			}
		}
	}
}

func TestImageFolder_ImagesOfAnotherSizeAreAnError(t *testing.T) {
	root := zoo(t)
	put(t, filepath.Join(root, "cat/b.jpeg"), encoded(t, "jpeg", drawing(1, 21, 24)))
	d, err := datasets.NewImageFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l := data.NewLoader(d, data.Options{BatchSize: 7})
	defer l.Close()
	for _, err := range l.Batches(t.Context()) {
		if !errors.Is(err, data.ErrShape) {
			t.Errorf("%v", err)
		}
	}
	d.MaxPixels = 100
	if _, err := d.Get(context.Background(), 0); !errors.Is(err, image.ErrTooLarge) {
		t.Errorf("more pixels than MaxPixels: %v", err)
	}
}

// torchvision follows links to folders and to files. It would follow one to a folder that the link
// is in as well, forty times.
func TestImageFolder_FollowsLinks(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"t/cls/0.jpg", "real/1.jpg", "real/deep/2.jpg", "t/other/3.jpg"} {
		put(t, filepath.Join(root, name), encoded(t, "jpg", drawing(i, 8, 8)))
	}
	for link, to := range map[string]string{
		"t/cls/more": "../../real", "t/linked": "../real/deep", "t/cls/9.jpg": "../other/3.jpg", "t/cls/loop": ".",
		"t/other/up": "..", "real/deep/back": "../../t/cls", "t/cls/broken": "nowhere",
	} {
		testutil.NoError(t, os.Symlink(to, filepath.Join(root, link)))
	}
	d := testutil.Value(datasets.NewImageFolder(filepath.Join(root, "t")))(t)
	defer d.Close()
	var got []string
	for p, err := range recordsOf(d.Paths) {
		testutil.NoError(t, err)
		got = append(got, string(p))
	}
	want := []string{"cls/0.jpg", "cls/9.jpg", "cls/more/1.jpg", "cls/more/deep/2.jpg", // cls/more/deep/back is cls
		"linked/2.jpg", "linked/back/0.jpg", "linked/back/9.jpg", "linked/back/more/1.jpg", // …/more/deep is linked
		"other/3.jpg", "other/up/cls/0.jpg", "other/up/cls/9.jpg", "other/up/cls/more/1.jpg",
		"other/up/cls/more/deep/2.jpg", "other/up/linked/2.jpg", "other/up/linked/back/0.jpg",
		"other/up/linked/back/9.jpg", "other/up/linked/back/more/1.jpg"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Other kinds of images are read, and those whose name says another kind.
func TestImageFolder_TheContentSaysTheKind(t *testing.T) {
	root := t.TempDir()
	recorded := "../image/internal/other/testdata/"
	for name, from := range map[string]string{
		"a/0.webp": "lossless.webp", "a/1.bmp": "rgb.bmp", "a/2.tif": "rgb_lzw.tif", "a/3.TIFF": "tiffgrey.tif",
		"a/4.ppm": "color.ppm", "a/5.pgm": "gray.pgm", "a/6.jpg": "lossless.webp", "a/7.webp": "rgb_raw.tif",
		"a/8.jpeg": "",
		"a/9.png":  "jpg",
	} {
		b := encoded(t, "png", drawing(1, 23, 19))
		if from == "jpg" {
			b = encoded(t, "jpg", drawing(1, 23, 19))
		} else if from != "" {
			b = testutil.Value(os.ReadFile(recorded + from))(t)
		}
		put(t, filepath.Join(root, name), b)
	}
	d := testutil.Value(datasets.NewImageFolder(root))(t)
	defer d.Close()
	n := 0
	l := data.NewLoader(d, data.Options{BatchSize: 5})
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		testutil.NoError(t, err)
		if n += b[0].Dim(0); !slices.Equal(b[0].Shape(), []int{5, 3, 23, 19}) {
			t.Errorf("%v", b[0].Shape())
		}
	}
	if n != 10 {
		t.Errorf("%d images", n)
	}
	put(t, filepath.Join(root, "b/0.jpg"), []byte("GIF89a………"))
	e := testutil.Value(datasets.NewImageFolder(root))(t)
	defer e.Close()
	_, err := e.Get(t.Context(), 10)
	testutil.ErrorIs(t, err, image.ErrUnsupported)
	testutil.ErrorContains(t, err, "b/0.jpg", "GIF")
}

// A repository that was cloned without Git LFS has pointers in place of its large files.
func TestImageFolder_NamesPointersOfGitLFS(t *testing.T) {
	pointer := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
	root := t.TempDir()
	put(t, filepath.Join(root, "a/0.jpg"), pointer)
	d := testutil.Value(datasets.NewImageFolder(root))(t)
	defer d.Close()
	_, err := d.Get(t.Context(), 0)
	testutil.ErrorContains(t, err, "a/0.jpg", "git lfs pull")
	for _, err := range datasets.Records(filepath.Join(root, "a/0.jpg")) {
		testutil.ErrorContains(t, err, "a/0.jpg", "git lfs pull")
	}
	_, err = datasets.OpenNPY(filepath.Join(root, "a/0.jpg"))
	testutil.ErrorContains(t, err, "a/0.jpg", "git lfs pull")
}
