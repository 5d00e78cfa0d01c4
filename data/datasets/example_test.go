package datasets_test

import (
	"archive/tar"
	"context"
	"fmt"
	stdimage "image"
	"image/png"
	"maps"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
)

// folder makes a folder for an example and returns what removes it.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "datasets")
	if err != nil {
		panic(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// grey writes a grey image.
func grey(path string, size int) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		panic(err)
	}
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := png.Encode(f, stdimage.NewGray(stdimage.Rect(0, 0, size, size))); err != nil {
		panic(err)
	}
}

// Images in a folder for each class, as torchvision's ImageFolder has them.
func ExampleImageFolder() {
	dir, remove := folder()
	defer remove()
	grey(filepath.Join(dir, "cat", "1.png"), 40)
	grey(filepath.Join(dir, "dog", "2.png"), 30)
	set, err := datasets.NewImageFolder(dir, image.Resize{H: 32}, image.CenterCrop(24, 24))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	sample, err := set.Get(context.Background(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Classes, sample[0].Shape(), sample[1])
	// Output: [cat dog] [3 24 24] tensor(1)
}

// Samples in a tar file, as WebDataset has them: files of one name are a sample.
func ExampleNewShards() {
	dir, remove := folder()
	defer remove()
	image1, shard := filepath.Join(dir, "1.png"), filepath.Join(dir, "shard-0.tar")
	grey(image1, 8)
	pixels, err := os.ReadFile(image1)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := os.Create(shard)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := tar.NewWriter(f)
	for name, content := range map[string]string{"a.png": string(pixels), "a.cls": "3"} {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		w.Write([]byte(content))
	}
	w.Close()
	f.Close()
	for record, err := range datasets.Records(shard) {
		fmt.Println(record.Key, len(record.Files), err)
	}
	loader := data.NewStreamLoader(datasets.NewShards(datasets.ImageDecoder{}, shard), data.Options{})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0].Shape(), batch[1])
	}
	// Output:
	// a 2 <nil>
	// [1 3 8 8] tensor([3])
}

// Records in one file, which every process maps.
func ExampleList() {
	dir, remove := folder()
	defer remove()
	path := filepath.Join(dir, "lines.list")
	if err := datasets.NewList([]string{"one", "two", "three"}).Save(path); err != nil {
		fmt.Println(err)
		return
	}
	list, err := datasets.OpenList(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer list.Close()
	record, err := list.At(2)
	fmt.Printf("%d records, the last one is %s, %v\n", list.Len(), record, err)
	// Output: 3 records, the last one is three, <nil>
}

// Records by key in one block of memory, which goes to other processes as a handle.
func ExampleMap() {
	m := datasets.NewMap(maps.All(map[string]string{"one": "eins"}))
	defer m.Close()
	if err := m.Share(); err != nil {
		fmt.Println(err)
		return
	}
	record, ok, err := m.Get("one")
	fmt.Printf("%s %v %v\n", record, ok, err)
	for entry, err := range m.All() {
		fmt.Printf("%s: %s %v\n", entry.Key, entry.Record, err)
	}
	// Output:
	// eins true <nil>
	// one: eins <nil>
}

// Digits are drawn, so a program has something to train on everywhere.
func ExampleDigits() {
	digits := datasets.Digits(3, 1)
	defer digits.Close()
	sample, err := digits.Get(context.Background(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sample[0].DType(), sample[0].Shape(), sample[1])
	// Output: uint8 [28 28] tensor(9)
}

// Samples of shards in another order in each epoch, and equally many for each of two ranks.
func ExampleShardOptions() {
	dir, remove := folder()
	defer remove()
	for shard := range 2 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("train-%03d.tar", shard)))
		if err != nil {
			fmt.Println(err)
			return
		}
		w := tar.NewWriter(f)
		for i := range 3 + 2*shard {
			w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.txt", 10*shard+i), Size: 1, Mode: 0o600})
			w.Write([]byte("x"))
		}
		w.Close()
		f.Close()
	}
	paths, err := datasets.Glob(filepath.Join(dir, "train-{000..001}.tar"))
	if err != nil {
		fmt.Println(err)
		return
	}
	set := datasets.NewShardsWith(lettered{}, datasets.ShardOptions{Shuffle: 100, Equal: true}, paths...)
	for rank := range 2 {
		n := 0
		for _, err := range set.Samples(context.Background(), data.Part{Index: rank, Count: 2}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			n++
		}
		fmt.Println("rank", rank, "has", n, "of 8 samples")
	}
	// Output:
	// rank 0 has 4 of 8 samples
	// rank 1 has 4 of 8 samples
}
