package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// scene is a sample of many kinds of things.
type scene struct {
	Image *tensor.Tensor   `data:"image"`
	Label int              `data:"label"`
	Score float32          `data:"score"`
	Name  string           `data:"name"`
	Boxes []*tensor.Tensor `data:"boxes"`
	Meta  map[string]any   `data:"meta"`
}

// scenes are scenes; Odd says what is wrong with which.
type scenes struct {
	N    int
	Odd  map[int]string
	Dir  string
	Kill []int
}

func init() {
	wire.RegisterType[*scenes]("test.scenes")
	wire.RegisterType[*sceneStream]("test.sceneStream")
	wire.RegisterType[*sentences]("test.sentences")
	wire.RegisterType[*plainly]("test.plainly")
	wire.RegisterType[*sceneOpener]("test.sceneOpener")
}

func (d *scenes) Len() int { return d.N }

func (d *scenes) Value(ctx context.Context, i int) (any, error) {
	if slices.Contains(d.Kill, i) && (&noisy{Dir: d.Dir}).once("kill", i) {
		die()
	}
	s := scene{
		Image: tensor.Full(tensor.Uint8, float64(i), 2, 2), Label: i, Score: float32(i) / 2,
		Name: fmt.Sprint("scene ", i),
		Boxes: []*tensor.Tensor{tensor.Full(tensor.Float32, float64(i), 4),
			tensor.Full(tensor.Float32, float64(-i), 4)},
		Meta: map[string]any{"draw": data.Rand(ctx).Float64(), "tags": []any{"a", fmt.Sprint(i)}},
	}
	switch d.Odd[i] {
	case "boxes":
		s.Boxes[1] = tensor.Full(tensor.Float32, 0, 3)
	case "keys":
		delete(s.Meta, "draw")
	case "kind":
		s.Meta["draw"] = "none"
	case "count":
		s.Boxes = s.Boxes[:1]
	case "nil":
		s.Image = nil
	case "channel":
		s.Meta["draw"] = make(chan int)
	}
	return s, nil
}

type sceneStream struct{ Of *scenes }

func (s *sceneStream) Values(ctx context.Context, p data.Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := range s.Of.N {
			if p.Has(i) && !yield(s.Of.Value(ctx, i)) {
				return
			}
		}
	}
}

// text shows an epoch.
func text[B any](t *testing.T, l *data.Loader, epoch int) (batches []string, err error) {
	t.Helper()
	if s := l.State(); s.Epoch != epoch {
		if err := l.Resume(data.State{Seed: s.Seed, Epoch: epoch}); err != nil {
			return nil, err
		}
	}
	for b, err := range data.BatchesOf[B](t.Context(), l) {
		if err != nil {
			return batches, err
		}
		batches = append(batches, strings.Join(strings.Fields(fmt.Sprint(b)), " "))
	}
	return batches, nil
}

func TestRegression_S3_1_StructsBecomeBatches(t *testing.T) {
	var want []string
	oneOfEach(func(name string, workers int, kind data.Kind) {
		l := data.NewLoader(data.Structured(&scenes{N: 10}),
			data.Options{BatchSize: 4, Workers: workers, Kind: kind, Seed: 1, Shared: kind == data.Processes})
		defer l.Close()
		var got []string
		for b, err := range data.BatchesOf[struct {
			Image *tensor.Tensor   `data:"image"`
			Label *tensor.Tensor   `data:"label"`
			Score *tensor.Tensor   `data:"score"`
			Name  []string         `data:"name"`
			Boxes []*tensor.Tensor `data:"boxes"`
			Meta  struct {
				Draw *tensor.Tensor `data:"draw"`
				Tags [][]string     `data:"tags"`
			} `data:"meta"`
		}](t.Context(), l) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n := len(b.Name)
			if !slices.Equal(b.Image.Shape(), []int{n, 2, 2}) || b.Score.DType() != tensor.Float64 ||
				!slices.Equal(b.Boxes[1].Shape(), []int{n, 4}) {
				t.Errorf("%s: %v", name, b)
			}
			for row := range n {
				label := tensor.At[int64](b.Label, row)
				if b.Name[row] != fmt.Sprint("scene ", label) || b.Meta.Tags[1][row] != fmt.Sprint(label) ||
					tensor.At[uint8](b.Image, row, 1, 1) != uint8(label) {
					t.Errorf("%s: row %d: %v", name, row, b)
				}
			}
			got = append(got, strings.Join(strings.Fields(fmt.Sprint(b)), " "))
		}
		if want == nil {
			want = got
		}
		if len(got) != 3 || !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	})
}

// numbersOnly are samples of one layout: their batches are filled row by row, as those of plain
// ones are.
func numbersOnly(n int) data.Dataset {
	return data.Structs(n, func(_ context.Context, i int) (map[string]any, error) {
		return map[string]any{"x": tensor.Full(tensor.Float32, float64(i), 2), "y": i, "good": i%2 == 0}, nil
	})
}

func TestRegression_S3_1_StructsOfNumbersFillRows(t *testing.T) {
	for _, workers := range []int{0, 2} {
		l := data.NewLoader(numbersOnly(5), data.Options{BatchSize: 2, Workers: workers})
		got, err := text[any](t, l, 0)
		want := []string{
			"map[good:tensor([ True, False]) x:tensor([[0., 0.], [1., 1.]]) y:tensor([0, 1])]",
			"map[good:tensor([ True, False]) x:tensor([[2., 2.], [3., 3.]]) y:tensor([2, 3])]",
			"map[good:tensor([True]) x:tensor([[4., 4.]]) y:tensor([4])]",
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
		l.Close()
	}
}

func TestRegression_S3_1_SetsOfSetsKeepTheStructure(t *testing.T) {
	one := data.Structured(&scenes{N: 6})
	plain := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, 6, 1))
	for name, c := range map[string]struct {
		set  data.Dataset
		want string
	}{
		"subset": {data.NewSubset(one, []int{5, 1}), "[scene 5 scene 1]"},
		"concat": {data.NewConcatDataset(one, data.NewSubset(one, []int{3})), "[scene 0 scene 1]"},
		"stack":  {data.NewStackDataset(one, plain), "[scene 0 scene 1]"},
	} {
		l := data.NewLoader(c.set, data.Options{BatchSize: 2})
		for b, err := range data.BatchesOf[any](t.Context(), l) {
			if list, ok := b.([]any); ok {
				if y := list[1].([]any)[0].(*tensor.Tensor); y.Numel() != 2 {
					t.Errorf("%s: %v", name, y)
				}
				b = list[0]
			}
			if got := fmt.Sprint(b.(map[string]any)["name"]); err != nil || got != c.want {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			break
		}
		l.Close()
	}
}

func TestStructuredStream_HasValues(t *testing.T) {
	for _, workers := range []int{0, 2} {
		stream := data.NewChainDataset(data.StructuredStream(&sceneStream{&scenes{N: 3}}),
			data.StructuredStream(&sceneStream{&scenes{N: 2}}))
		l := data.NewStreamLoader(stream, data.Options{BatchSize: 4, Parts: 1, Workers: workers, Kind: data.Processes})
		var names []string
		for b, err := range data.BatchesOf[map[string]any](t.Context(), l) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, fmt.Sprint(b["name"]))
		}
		if got := fmt.Sprint(names); got != "[[scene 0 scene 1 scene 2 scene 0] [scene 1]]" {
			t.Error(got)
		}
		l.Close()
	}
}

func TestRegression_S3_1_ASampleUnlikeTheOthersIsNamed(t *testing.T) {
	for odd, want := range map[string]string{
		"boxes":   `load sample 2: field "boxes"[1]: got shape [3], want [4] as in the first sample`,
		"keys":    `load sample 2: field "meta": got keys ["tags"], want ["draw" "tags"] as in the first sample`,
		"kind":    `load sample 2: field "meta"."draw": got a string, want a float as in the first sample`,
		"count":   `load sample 2: field "boxes": got 1 items, want 2 as in the first sample`,
		"nil":     `load sample 2: field "image": tensor is nil`,
		"channel": `load sample 2: field "meta"."draw": got chan int, want a tensor`,
	} {
		oneOfEach(func(name string, workers int, kind data.Kind) {
			l := data.NewLoader(data.Structured(&scenes{N: 4, Odd: map[int]string{2: odd}}),
				data.Options{BatchSize: 4, Workers: workers, Kind: kind})
			defer l.Close()
			_, err := text[any](t, l, 0)
			sentinel := data.ErrShape
			if odd == "nil" || odd == "channel" {
				sentinel = data.ErrSample
			}
			var bad *data.SampleError
			if err == nil || !errors.As(err, &bad) || !errors.Is(err, sentinel) ||
				!strings.HasPrefix(strings.Replace(err.Error(), " in worker "+fmt.Sprint(bad.Worker), "", 1), want) {
				t.Errorf("%s, %s: %v", odd, name, err)
			}
			skipping := data.NewLoader(data.Structured(&scenes{N: 4, Odd: map[int]string{2: odd}}), data.Options{
				BatchSize: 4, Workers: workers, Kind: kind, Skip: func(*data.SampleError) bool { return true },
			})
			defer skipping.Close()
			for b, err := range data.BatchesOf[map[string]any](t.Context(), skipping) {
				if sentinel == data.ErrSample && (err != nil || fmt.Sprint(b["name"]) != "[scene 0 scene 1 scene 3]") {
					t.Errorf("%s, %s: %v, %v", odd, name, b["name"], err)
				}
			}
		})
	}
}

// plainly is numbers whose rows have another layout from sample 4 on: a tensor, and then a string.
type plainly struct{ N int }

func (d *plainly) Len() int { return d.N }

func (d *plainly) Value(_ context.Context, i int) (any, error) {
	if i < 4 {
		return map[string]any{"x": i}, nil
	}
	return map[string]any{"x": fmt.Sprint(i)}, nil
}

func TestStructured_MayChangeFromBatchToBatch(t *testing.T) {
	oneOfEach(func(name string, workers int, kind data.Kind) {
		l := data.NewLoader(data.Structured(&plainly{8}), data.Options{BatchSize: 2, Workers: workers, Kind: kind})
		defer l.Close()
		got, err := text[any](t, l, 0)
		if want := "[map[x:tensor([0, 1])] map[x:tensor([2, 3])] map[x:[4 5]] map[x:[6 7]]]"; err != nil ||
			fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	})
}

func TestStructured_SurvivesKilledWorkersAndResume(t *testing.T) {
	set := data.Structured(&scenes{N: 12})
	l := data.NewLoader(set, data.Options{BatchSize: 3, Shuffle: true, Seed: 5})
	defer l.Close()
	want, err := text[any](t, l, 0)
	if err != nil {
		t.Fatal(err)
	}
	killed := data.NewLoader(data.Structured(&scenes{N: 12, Kill: []int{2, 7}, Dir: t.TempDir()}),
		data.Options{BatchSize: 3, Shuffle: true, Seed: 5, Workers: 2, Kind: data.Processes})
	defer killed.Close()
	if got, err := text[any](t, killed, 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("with killed workers: %v, %v", got, err)
	}
	first := data.NewLoader(set, data.Options{BatchSize: 3, Shuffle: true, Seed: 5, Workers: 2})
	defer first.Close()
	for range data.BatchesOf[any](t.Context(), first) {
		break
	}
	state, err := json.Marshal(first.State())
	if err != nil {
		t.Fatal(err)
	}
	var again data.State
	if err := json.Unmarshal(state, &again); err != nil {
		t.Fatal(err)
	}
	rest := data.NewLoader(set, data.Options{BatchSize: 3, Shuffle: true, Seed: 5, Workers: 1, Kind: data.Processes})
	defer rest.Close()
	if err := rest.Resume(again); err != nil {
		t.Fatal(err)
	}
	if got, err := text[any](t, rest, 0); err != nil || !slices.Equal(got, want[1:]) {
		t.Errorf("resumed: %v, %v", got, err)
	}
}

// sentences are rows of different lengths.
type sentences struct{ N int }

func (d *sentences) Len() int { return d.N }

func (d *sentences) Value(_ context.Context, i int) (any, error) {
	ids := make([]int64, 1+i%3)
	for k := range ids {
		ids[k] = int64(i)
	}
	return map[string]any{"ids": ids, "label": i}, nil
}

func TestRegression_S3_1_RaggedRowsArePaddedOrNested(t *testing.T) {
	oneOfEach(func(name string, workers int, kind data.Kind) {
		o := data.Options{BatchSize: 3, Workers: workers, Kind: kind}
		o.Ragged = data.Ragged{"ids": data.Pad{Value: -1, Left: true, Multiple: 2, Mask: "mask", Lengths: "lengths"}}
		l := data.NewLoader(data.Structured(&sentences{6}), o)
		defer l.Close()
		got, err := text[any](t, l, 0)
		if err != nil || len(got) != 2 ||
			got[0] != "map[ids:tensor([[-1, -1, -1, 0], [-1, -1, 1, 1], [-1, 2, 2, 2]]) label:tensor([0, 1, 2]) "+
				"lengths:tensor([1, 2, 3]) "+
				"mask:tensor([[False, False, False, True], [False, False, True, True], [False, True, True, True]])]" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		o.Ragged = data.Ragged{"ids": data.Nested{}}
		nested := data.NewLoader(data.Structured(&sentences{6}), o)
		defer nested.Close()
		for b, err := range data.BatchesOf[struct {
			IDs   data.NestedRows `data:"ids"`
			Label *tensor.Tensor  `data:"label"`
		}](t.Context(), nested) {
			if err != nil || b.IDs.Values.Numel() != 6 || fmt.Sprint(tensor.Data[int64](b.IDs.Offsets)) != "[0 1 3 6]" {
				t.Errorf("%s: %v, %v", name, b, err)
			}
		}
		o.Ragged = data.Ragged{"*": data.Pad{Lengths: "n"}}
		plain := data.NewLoader(registeredRagged{6}, o)
		defer plain.Close()
		for b, err := range plain.Batches(t.Context()) {
			if err != nil || len(b) != 2 || b[0].Dims() != 2 || b[1].Numel() != 3 {
				t.Errorf("%s: %v, %v", name, b, err)
			}
		}
	})
	for _, o := range []data.Options{
		{Ragged: data.Ragged{"ids": nil}}, {Ragged: data.Ragged{"ids": data.Pad{Length: -1}}},
		{Ragged: data.Ragged{"ids": data.Pad{Length: 3, Multiple: 2}}},
		{Ragged: data.Ragged{}, BatchSize: data.Single}, {Ragged: data.Ragged{}, Collate: longest},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v did not panic", o)
				}
			}()
			data.NewLoader(upTo(1), o)
		}()
	}
}

func TestRagged_RefusesALongRowAndARuleForNothing(t *testing.T) {
	for want, how := range map[string]data.Ragged{
		`load sample 1: field "ids": ragged row has length 2, want at most 1`: {"ids": data.Pad{Length: 1}},
		`load sample 0: ragged rules name ["tokens"]`:                         {"tokens": data.Pad{}},
		`load sample 0: field "label": ragged rule applies to int, want`:      {"label": data.Pad{}},
	} {
		l := data.NewLoader(data.Structured(&sentences{6}), data.Options{BatchSize: 3, Ragged: how})
		if _, err := text[any](t, l, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, not %s", err, want)
		}
		l.Close()
	}
}

var mixScenes = data.RegisterCollate("test.mix", func(ctx context.Context, samples []scene) (any, error) {
	names := make([]string, len(samples))
	sum := 0
	for i, s := range samples {
		names[i], sum = s.Name, sum+s.Label
	}
	info, _ := data.WorkerInfo(ctx)
	return map[string]any{"names": names, "sum": sum, "set": fmt.Sprintf("%T", info.Dataset)}, nil
})

func TestRegisterCollate_TakesValues(t *testing.T) {
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		l := data.NewLoader(data.Structured(&scenes{N: 3}),
			data.Options{BatchSize: 2, Workers: 1, Kind: kind, Collate: mixScenes})
		got, err := text[any](t, l, 0)
		want := "[map[names:[scene 0 scene 1] set:*data_test.scenes sum:1] map[names:[scene 2] " +
			"set:*data_test.scenes sum:2]]"
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("kind %d: %v, %v", kind, got, err)
		}
		if s := l.Stats(); s.Samples != 3 {
			t.Errorf("kind %d: %d samples", kind, s.Samples)
		}
		l.Close()
		l = data.NewLoader(data.Structured(&sentences{N: 3}),
			data.Options{BatchSize: 2, Workers: 1, Kind: kind, Collate: mixScenes})
		if _, err := text[any](t, l, 0); err == nil ||
			!strings.Contains(err.Error(), `want data_test.scene for Collate "test.mix"`) {
			t.Errorf("kind %d: %v", kind, err)
		}
		l.Close()
	}
}

// sceneOpener opens scenes in each worker.
type sceneOpener struct{ N int }

func (o *sceneOpener) Len() int { return o.N }
func (o *sceneOpener) Value(context.Context, int) (any, error) {
	return nil, errors.New("it was not opened")
}
func (o *sceneOpener) Open(ctx context.Context) (any, error) {
	return &openScenes{scenes{N: o.N}}, nil
}

type openScenes struct{ scenes }

func (s *openScenes) Value(ctx context.Context, i int) (any, error) {
	info, _ := data.WorkerInfo(ctx)
	return map[string]any{"i": i, "opened": info.Dataset == s, "pid": os.Getpid()}, nil
}

func TestRegression_S3_1_WorkerInfoHasTheDataset(t *testing.T) {
	oneOfEach(func(name string, workers int, kind data.Kind) {
		if workers == 0 {
			return // there is no worker to know of
		}
		l := data.NewLoader(data.Structured(&sceneOpener{4}), data.Options{BatchSize: 4, Workers: workers, Kind: kind})
		defer l.Close()
		for b, err := range data.BatchesOf[map[string]*tensor.Tensor](t.Context(), l) {
			if err != nil || !tensor.At[bool](b["opened"], 3) ||
				(tensor.At[int64](b["pid"], 0) != int64(os.Getpid())) != (kind == data.Processes) {
				t.Errorf("%s: %v, %v", name, b, err)
			}
		}
	})
}

func TestSingle_LeavesValuesAsTheyAre(t *testing.T) {
	oneOfEach(func(name string, workers int, kind data.Kind) {
		l := data.NewLoader(data.Structured(&scenes{N: 3}),
			data.Options{BatchSize: data.Single, Workers: workers, Kind: kind})
		defer l.Close()
		n := 0
		for s, err := range data.BatchesOf[scene](t.Context(), l) {
			if err != nil || s.Label != n || s.Score != float32(n)/2 || s.Name != fmt.Sprint("scene ", n) ||
				s.Image.Dims() != 2 || s.Meta["tags"].([]any)[0] != "a" {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
			n++
		}
		if n != 3 {
			t.Errorf("%s: %d samples", name, n)
		}
	})
}

func TestTransform_IsOfTheFirstTensorOfAValue(t *testing.T) {
	add := data.TransformFunc(func(_, src *tensor.Tensor) *tensor.Tensor { return src.Clone().AddScalarInPlace(100) })
	set := data.Structs(4, func(_ context.Context, i int) (any, error) {
		return map[string]any{"a": i, "b": fmt.Sprint(i), "c": tensor.Scalar(tensor.Int64, float64(i))}, nil
	})
	l := data.NewLoader(set, data.Options{BatchSize: 4, Transform: add})
	defer l.Close()
	got, err := text[any](t, l, 0)
	if err != nil || got[0] != "map[a:tensor([0, 1, 2, 3]) b:[0 1 2 3] c:tensor([100, 101, 102, 103])]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBatchesOf_ABatchThatDoesNotFitIsAnError(t *testing.T) {
	l := data.NewLoader(data.Structured(&scenes{N: 4}), data.Options{BatchSize: 2})
	defer l.Close()
	for _, err := range data.BatchesOf[struct{ Image *tensor.Tensor }](t.Context(), l) {
		if err == nil || !strings.Contains(err.Error(),
			`no field "boxes" in struct { Image *tensor.Tensor }, which has ["Image"]`) &&
			!strings.Contains(err.Error(), `no field "image"`) {
			t.Errorf("%v", err)
		}
	}
	for b, err := range data.BatchesOf[data.Batch](t.Context(),
		data.NewLoader(&noisy{N: 2}, data.Options{BatchSize: 2})) {
		if err != nil || len(b) != 3 {
			t.Errorf("%v, %v", b, err)
		}
	}
}

func TestDefaultCollate_IsForCollatesOfOnesOwn(t *testing.T) {
	got, err := data.DefaultCollate([]any{[]any{1, "a"}, []any{2, "b"}}, nil)
	if s := fmt.Sprint(got); err != nil || s != "[tensor([1, 2]) [a b]]" {
		t.Errorf("%s, %v", s, err)
	}
	_, err = data.DefaultCollate([]any{1, "a"}, nil)
	if err == nil || !errors.Is(err, data.ErrShape) ||
		err.Error() != "data: sample 1: got a string, want an integer as in the first sample" {
		t.Errorf("%v", err)
	}
}
