// Command shoal-loader feeds a PyTorch DataLoader with samples that Go loads from common file
// formats. Scripts can use it without writing a Go program:
//
//	CGO_ENABLED=0 go build -o loader ./cmd/shoal-loader
//
//	torch.multiprocessing.set_executable("./loader")
//	DataLoader(Go("images", root="train", resize=256, crop=224), num_workers=2, multiprocessing_context="spawn")
//
// The script must define the class Go, which has a few lines; see docs/torch.md, which also lists
// the options.
//
// The program can also run as a data host that serves batches to trainers on other machines. "shoal
// serve" executes it in this way:
//
//	loader serve -key-file key -batch-size 64 -shuffle images '{"root": "train", "resize": 256, "crop": 224}'
//
// It then prints its address and periodically the number of batches sent, and serves until it
// receives SIGINT or SIGTERM. Without arguments it prints the data sets and their options. "loader
// --shoal-probe NAME OPTIONS" prints the number of samples of a data set. It is a separate program
// because package torch and the Parquet reader need package net.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/torch"

	_ "github.com/shoal-mp/shoal/torch/huggingface" // Hugging Face data sets
)

// sets maps names to the constructors of map-style data sets, which return samples by index.
var sets = map[string]torch.OpenDataset{
	"images": openImages, "npy": openNPY, "jsonl": openJSONL, "parquet": openParquet, "tokens": openTokens,
	"service": openService,
}

func main() {
	tolerant := map[string]torch.OpenDataset{}
	for name, open := range sets {
		tolerant[name] = tolerateErrors(open)
	}
	tolerant["jsonl"] = openCheckedJSONL
	torch.Child{
		Datasets: tolerant, Streams: map[string]torch.OpenStream{"shards": openShards},
		Labeled: map[string]bool{"images": true, "shards": true},
	}.Main()
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "shoal-loader:", words.CleanError(err))
			if errors.Is(err, errOption) {
				os.Exit(2)
			}
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 {
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	}
	fmt.Print(help)
}

const help = `PyTorch starts this program: torch.multiprocessing.set_executable(the path of it)

A data set is a Dataset in Python with self.shoal_dataset = NAME; its other attributes are the options:

  images  root            a folder of JPEG, PNG, WEBP, TIFF, BMP, PPM and PGM files, with a folder for each class
  shards  paths           tar files as WebDataset has them, also .tar.gz and .tar.zst, with an image and .cls; an IterableDataset
          rank, world     of the process that trains; each gets a part of the samples
          shuffle         read the files in random order, and draw samples from a buffer of so many (True: 1000)
          seed, epoch     of that order; by default PyTorch's seed, or 0 if world is more than 1, and the worker's epoch
          equal           True gives each worker of each rank the same number of samples, and leaves out the rest
          Both: channels, dtype ("float32" or "uint8"), and transform, of torchvision's, or, in this order,
          resize, crop, random_crop, random_resized_crop, flip, vertical_flip, mean, std
  npy     paths           files of numpy; sample i is row i of each
  jsonl   paths, columns  lines of JSON
  parquet paths, columns  rows of Parquet; columns is a list of names, or a dict of names and dtypes
          cache, spill    bytes of rows that each worker keeps in memory (64 MiB), and in a temporary file if they are read
                          in no order (16 GiB; -1 for no file)
          Both: pad       a number, with which lists of different lengths become rows of a tensor; or a dict of columns, with a number
                          each, or a dict of value, left, multiple, length, mask and lengths (names of columns that are added)
  tokens  path, length    windows of tokens in a file of numbers (.bin) or of numpy (.npy), each with the one after it
          stride, dtype, vocabulary
          or lines of JSON that are or have (column) lists of tokens (.jsonl), cut or filled up to length with pad
  service hosts, key      the samples of data hosts: addresses, and the path of the file with the key
          patience        seconds after which a silent host is given up (30)

All: skip                 True leaves out samples that cannot be loaded, and says which, and how many, on stderr; a batch then
                          has fewer samples, and one without any is an error
     retries              how often a sample that cannot be loaded is tried again; not of shards
Paths may have patterns, such as "train-*.tar" and "train-{000..012}.tar".
  --shoal-probe NAME OPTIONS  prints how many samples a data set has; OPTIONS are a JSON object
  serve NAME OPTIONS          makes this machine a data host of that data set; serve -h lists the flags
`
