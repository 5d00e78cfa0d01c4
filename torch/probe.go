package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// probeFlag asks a program for the length of a data set: program --shoal-probe NAME ARGS. ARGS are
// the keyword arguments as a JSON object.
const probeFlag = "--shoal-probe"

// probed is the answer to a probe, as it is printed in JSON.
type probed struct {
	Len     int      `json:"len"`
	Classes []string `json:"classes"` // null if the data set has no class names
}

// probe opens a data set and writes its length and class names to out as JSON, in the form of
// probed, before any worker exists. args are the registered name of the data set and,
// optionally, its keyword arguments as a JSON object.
func (c Child) probe(ctx context.Context, out io.Writer, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("usage: %s NAME [ARGS], with ARGS the keyword arguments as JSON, such as {\"root\": "+
			"\"photos\"}", probeFlag)
	}
	open := c.Datasets[args[0]]
	if open == nil {
		return c.unknownNameError("data set", args[0])
	}
	w := &loaderWorker{Worker: Worker{Workers: 1, Args: new(python.Dict)}, info: data.Info{Workers: 1}}
	if len(args) == 2 {
		d, err := value.OptionsOf(args[1])
		if err != nil {
			return err
		}
		w.Args = d
	}
	s := &source{child: c, worker: w}
	answer, err := s.probe(ctx, open)
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}

func (s *source) probe(ctx context.Context, open OpenDataset) (p probed, err error) {
	ds, err := open(ctx, s.worker.Worker)
	if err == nil {
		ds, err = s.openAndRegister(ctx, ds, false)
	}
	if err != nil {
		return p, err
	}
	return describeDataset(ds), nil
}

// describeDataset returns the length and the class names of a data set.
func describeDataset(ds data.Dataset) (p probed) {
	p.Len = ds.Len()
	switch ds := ds.(type) {
	case *datasets.ImageFolder: // its class names are a field
		p.Classes = slices.Clone(ds.Classes)
	case interface{ Classes() []string }:
		p.Classes = slices.Clone(ds.Classes())
	}
	return p
}
