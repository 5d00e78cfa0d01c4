package tree_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

type point struct {
	_ struct{} `data:",tuple"`
	X int
	Y float64
}

type photo struct {
	Image *tensor.Tensor   `data:"image"`
	Label int32            `torch:"label"`
	Good  bool             `data:"good"`
	Name  string           `data:"name"`
	Raw   []byte           `data:"raw"`
	Boxes []*tensor.Tensor `data:"boxes"`
	At    point            `data:"at"`
	Meta  map[string]any   `data:"meta"`
	None  *int             `data:"none"`
	Cache func()           `data:"-"`
}

func sample(i int) photo {
	return photo{
		Image: tensor.Full(tensor.Uint8, float64(i), 2, 3), Label: int32(i), Good: i%2 == 0,
		Name: strings.Repeat("ü", i), Raw: []byte{byte(i)},
		Boxes: []*tensor.Tensor{tensor.Full(tensor.Float32, float64(i), 4), tensor.Scalar(tensor.Int64, float64(i))},
		At:    point{X: i, Y: float64(i) / 2}, Meta: map[string]any{"b": i, "a": []any{"x", 1.5}},
	}
}

func TestTree_ValueComesBackAsItWas(t *testing.T) {
	want := sample(3)
	v, err := tree.Flatten(want, tree.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var got photo
	if err := v.Into(&got); err != nil {
		t.Fatal(err)
	}
	if want.Meta["b"] = int64(3); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	v, err = tree.Flatten(want, tree.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := v.Any()
	if err != nil {
		t.Fatal(err)
	}
	m := plain.(map[string]any)
	if m["label"] != int64(3) || m["name"] != "üüü" || m["none"] != nil || m["at"].([]any)[1] != 1.5 ||
		m["image"] != want.Image {
		t.Errorf("%v", m)
	}
}

func collate(t *testing.T, rules map[string]tree.Rule, samples ...any) (tree.Value, error) {
	t.Helper()
	all := make([]tree.Value, len(samples))
	r := tree.NewRules(rules)
	for i, s := range samples {
		v, err := tree.Flatten(s, r)
		if err != nil {
			return tree.Value{}, err
		}
		all[i] = v
	}
	return tree.Collate(all, r, tree.OnHeap)
}

func TestCollate_IsThatOfPyTorch(t *testing.T) {
	a, b := sample(1), sample(2)
	type batch struct {
		Image, Label, Good *tensor.Tensor
		Name               []string
		Raw                [][]byte
		Boxes              []*tensor.Tensor
		At                 struct {
			_    struct{} `data:",tuple"`
			X, Y *tensor.Tensor
		}
		Meta struct {
			A []any          `data:"a"`
			B *tensor.Tensor `data:"b"`
		}
	}
	type named struct {
		A batch
		B []string
	}
	strip := func(p photo) any {
		return map[string]any{
			"A": map[string]any{"Image": p.Image, "Label": p.Label, "Good": p.Good, "Name": p.Name,
				"Raw": p.Raw, "Boxes": p.Boxes, "At": p.At, "Meta": p.Meta},
			"B": p.Name,
		}
	}
	v, err := collate(t, nil, strip(a), strip(b))
	if err != nil {
		t.Fatal(err)
	}
	var got named
	if err := v.Into(&got); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(got.A.Image.Shape(), got.A.Label, got.A.Good, got.A.Name, got.A.Raw,
		got.A.Boxes[0].Shape(), got.A.Boxes[1], got.A.At.X, got.A.At.Y,
		got.A.Meta.A[0], got.A.Meta.A[1], got.A.Meta.B, got.B)
	want := "[2 2 3] tensor([1, 2]) tensor([False,  True]) [ü üü] [[1] [2]] [2 4] tensor([1, 2]) tensor([1, " +
		"2]) tensor([0.5000, 1.0000], dtype=torch.float64) " +
		"[x x] tensor([1.5000, 1.5000], dtype=torch.float64) tensor([1, 2]) [ü üü]"
	if text != want {
		t.Errorf("%s\nnot\n%s", text, want)
	}
}

func ints(n ...int64) *tensor.Tensor { return tensor.FromSlice(n, len(n)) }

func TestCollate_OfRaggedRows(t *testing.T) {
	rows := []any{map[string]any{"ids": []int{1, 2, 3}, "y": 1}, map[string]any{"ids": []int{4}, "y": 2}}
	for name, c := range map[string]struct {
		rule tree.Rule
		want string
	}{
		"pad":      {tree.Rule{}, "map[ids:[[1, 2, 3], [4, 0, 0]] y:[1, 2]]"},
		"value":    {tree.Rule{Value: -1, Left: true}, "map[ids:[[1, 2, 3], [-1, -1, 4]] y:[1, 2]]"},
		"multiple": {tree.Rule{Multiple: 4}, "map[ids:[[1, 2, 3, 0], [4, 0, 0, 0]] y:[1, 2]]"},
		"length":   {tree.Rule{Length: 5}, "map[ids:[[1, 2, 3, 0, 0], [4, 0, 0, 0, 0]] y:[1, 2]]"},
		"mask": {tree.Rule{Mask: "mask", Lengths: "n", Left: true},
			"map[ids:[[1, 2, 3], [0, 0, 4]] mask:[[True, True, True], [False, False, True]] n:[3, 1] y:[1, 2]]"},
		"nested": {tree.Rule{Nested: true, Lengths: "n"},
			"map[ids:map[offsets:[0, 3, 4] values:[1, 2, 3, 4]] n:[3, 1] y:[1, 2]]"},
	} {
		v, err := collate(t, map[string]tree.Rule{"ids": c.rule}, rows...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := show(t, v); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	v, err := collate(t, map[string]tree.Rule{tree.Every: {Lengths: "n"}}, []any{ints(1, 2), 7}, []any{ints(), 8})
	if got := show(t, v); err != nil || got != "[[[1, 2], [0, 0]] [7, 8] [2, 0]]" {
		t.Errorf("every: %s, %v", got, err)
	}
	_, err = collate(t, map[string]tree.Rule{"idz": {}}, rows...)
	if err == nil || !strings.Contains(err.Error(),
		`ragged rules name ["idz"], but the value has fields ["ids" "y"]`) {
		t.Errorf("a rule for nothing: %v", err)
	}
}

func TestCollate_PadsListsOfLists(t *testing.T) {
	some := func(of ...any) any { return map[string]any{"x": of} }
	for name, c := range map[string]struct {
		rule tree.Rule
		rows []any
		want string
	}{
		"lists": {tree.Rule{Value: -1, Mask: "m", Lengths: "n"}, []any{some(ints(1, 2), ints()), some(ints(3))},
			"map[m:[[[True, True], [False, False]], [[True, False], [False, False]]] n:[[2, 0], [1, 0]] " +
				"x:[[[1, 2], [-1, -1]], [[3, -1], [-1, -1]]]]"},
		"left": {tree.Rule{Left: true, Multiple: 3, Lengths: "n"}, []any{some(ints(1, 2)), some(ints(), ints(3))},
			"map[n:[[0, 2], [0, 1]] x:[[[0, 0, 0], [0, 1, 2]], [[0, 0, 0], [0, 0, 3]]]]"},
		"slices": {tree.Rule{Length: 2}, []any{map[string]any{"x": [][]int{{1}, {2}}}, map[string]any{"x": [][]int{}}},
			"map[x:[[[1, 0], [2, 0]], [[0, 0], [0, 0]]]]"},
		"an empty list first": {tree.Rule{}, []any{some(), some(ints(1)), some()},
			"map[x:[[[0]], [[1]], [[0]]]]"},
		"only empty lists": {tree.Rule{Lengths: "n"}, []any{some([]any{}), some()}, "map[n:[[0], [0]] x:[], size=(2, 1, 0, dtype=torch.int64]"},
		"a matrix beside lists": {tree.Rule{}, []any{map[string]any{"x": ints(1, 2, 3, 4).View(2, 2)}, some(ints(5))},
			"map[x:[[[1, 2], [3, 4]], [[5, 0], [0, 0]]]]"},
		"three levels": {tree.Rule{Lengths: "n"}, []any{some([]any{ints(1), ints(2, 3)}, []any{}), some([]any{ints(4)})},
			"map[n:[[[1, 2], [0, 0]], [[1, 0], [0, 0]]] " +
				"x:[[[[1, 0], [2, 3]], [[0, 0], [0, 0]]], [[[4, 0], [0, 0]], [[0, 0], [0, 0]]]]]"},
		"a matrix within lists": {tree.Rule{}, []any{some(ints(1, 2).View(2, 1), []any{ints(3, 4)})},
			"map[x:[[[[1, 0], [2, 0]], [[3, 4], [0, 0]]]]]"},
		"rows of pairs": {tree.Rule{}, []any{some(ints(1, 2).View(1, 2)), some(ints(3, 4, 5, 6).View(2, 2))},
			"map[x:[[[[1, 2], [0, 0]]], [[[3, 4], [5, 6]]]]]"},
	} {
		for _, path := range []string{"x", tree.Every} {
			if path == tree.Every && name == "slices" {
				continue // a rule for all tensors leaves other slices alone
			}
			v, err := collate(t, map[string]tree.Rule{path: c.rule}, c.rows...)
			if err != nil {
				t.Errorf("%s of %s: %v", name, path, err)
			} else if got := strings.Join(strings.Fields(show(t, v)), " "); got != c.want {
				t.Errorf("%s of %s: %s, not %s", name, path, got, c.want)
			}
		}
	}
	for name, c := range map[string]struct {
		rule tree.Rule
		rows []any
		want string
	}{
		"nested":      {tree.Rule{Nested: true}, []any{some(ints(1))}, "lists of rows cannot be concatenated: pad them"},
		"length":      {tree.Rule{Length: 1}, []any{some(ints(1)), some(ints(1, 2))}, `sample 1: field "x": ragged row has length 2`},
		"a number":    {tree.Rule{}, []any{some(ints(1), 2)}, "want a tensor, a slice of numbers, or a list of these"},
		"depths":      {tree.Rule{}, []any{some(ints(1), []any{ints(2)})}, `field "x": got numbers and lists in one list`},
		"dtypes":      {tree.Rule{}, []any{some(ints(1), tensor.New(tensor.Float32, 1))}, `field "x": list has rows of int64 [1] and of float32 [1]`},
		"other rows":  {tree.Rule{}, []any{some(ints(1)), some(tensor.New(tensor.Float32, 1))}, `sample 1: field "x": got float32, want int64`},
		"other depth": {tree.Rule{}, []any{some(ints(1)), map[string]any{"x": ints(1)}}, "sample 1: got a list of numbers, want a list of lists"},
		"closed":      {tree.Rule{}, []any{some(new(tensor.Tensor))}, "want a tensor, a slice of numbers, or a list of these"},
	} {
		_, err := collate(t, map[string]tree.Rule{"x": c.rule}, c.rows...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %s", name, err, c.want)
		}
	}
}

func show(t *testing.T, v tree.Value) string {
	t.Helper()
	a, err := v.Any()
	if err != nil {
		return err.Error()
	}
	s := strings.NewReplacer("tensor(", "", ")", "", "\n", "", "        ", " ", "       ", " ", "  ",
		" ").Replace(fmt.Sprint(a))
	return strings.ReplaceAll(strings.ReplaceAll(s, "[ ", "["), ", dtype=bool", "")
}

func TestCollate_ErrorsSayWhere(t *testing.T) {
	circle := map[string]any{}
	circle["again"] = circle
	type hidden struct{ x int }
	m := func(k string, v any) any { return map[string]any{"a": 1, k: v} }
	for name, c := range map[string]struct {
		samples []any
		want    string
		row     int
	}{
		"shape": {[]any{m("boxes", []any{1, 2, ints(1, 2, 3, 4)}),
			m("boxes", []any{1, 2, ints(1, 2, 3)})},
			`field "boxes"[2]: got shape [3], want [4] as in the first sample`, 1},
		"dtype": {[]any{ints(1), tensor.New(tensor.Float32, 1)}, "got float32, want int64 as in the first sample", 1},
		"keys":  {[]any{m("b", 1), m("c", 1)}, `got keys ["a" "c"], want ["a" "b"] as in the first sample`, 1},
		"kind": {[]any{m("b", 1), m("b", 1), m("b", "x")},
			`field "b": got a string, want an integer as in the first sample`, 2},
		"items": {[]any{m("b", []int{1}), m("b", []int{})},
			`field "b": got 0 items, want 1 as in the first sample`, 1},
		"nil":        {[]any{m("b", nil)}, `field "b": nil cannot be batched`, 0},
		"nil tensor": {[]any{m("b", (*tensor.Tensor)(nil))}, `field "b": tensor is nil`, -1},
		"closed":     {[]any{m("b", new(tensor.Tensor))}, `field "b": tensor is closed`, -1},
		"function":   {[]any{m("b", func() {})}, `got func(), want a tensor`, -1},
		"complex":    {[]any{m("b", 1i)}, `got complex128, want a tensor`, -1},
		"circle":     {[]any{circle}, "value exceeds 64 levels", -1},
		"key":        {[]any{map[float64]int{1: 1}}, "key is float64", -1},
		"large":      {[]any{uint64(math.MaxUint64)}, "18446744073709551615 overflows int64", -1},
		"hidden":     {[]any{hidden{1}}, "unexported field x", -1},
		"the batch":  {nil, "batch has 0 samples", -1},
	} {
		_, err := collate(t, nil, c.samples...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %s", name, err, c.want)
		}
		row := (*tree.RowError)(nil)
		if errors.As(err, &row) != (c.row >= 0) || row != nil && row.Row != c.row {
			t.Errorf("%s: row of %v", name, err)
		}
	}
}

func TestTree_RefusesWhatDoesNotGoIn(t *testing.T) {
	again := func() tree.Value {
		v, err := tree.Flatten(map[string]any{"a": 300, "b": "text", "c": []any{1, 2}, "d": 1.5}, tree.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	type all struct {
		A int    `data:"a"`
		B string `data:"b"`
		C [2]int `data:"c"`
		D any    `data:"d"`
	}
	for name, dst := range map[string]any{
		"overflow": new(struct {
			A uint8 `data:"a"`
			all
		}),
		"no field": new(struct{ A int }), "no pointer": all{}, "no map": new(int), "keys": new(map[int]any),
		"values": new(map[string]int), "nil": nil,
		"length": new(struct {
			A int    `data:"a"`
			B string `data:"b"`
			C [3]int `data:"c"`
			D any    `data:"d"`
		}),
	} {
		if err := again().Into(dst); !errors.Is(err, tree.ErrValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var got all
	if err := again().Into(&got); err != nil || got.C != [2]int{1, 2} || got.D != 1.5 {
		t.Errorf("%+v, %v", got, err)
	}
	v := again()
	v.Tensors = v.Tensors[1:]
	if err := v.Into(&got); !errors.Is(err, tree.ErrSpec) {
		t.Errorf("a tensor less: %v", err)
	}
}

func TestCollate_OfFixedShapes(t *testing.T) {
	for _, c := range []struct {
		v    any
		want bool
	}{
		{1, true}, {"s", false}, {map[string]any{}, false}, {map[string]any{"a": []any{}, "b": 1}, true},
		{[]any{1, nil}, false}, {sample(1), false},
	} {
		v, err := tree.Flatten(c.v, tree.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := tree.Parse(v.Spec)
		if err != nil || n.Fixed() != c.want || n.Spec() != v.Spec {
			t.Errorf("%v: %v, %v", c.v, n, err)
		}
	}
}

// FuzzParse wants a description to be read or refused, and what was read to describe itself.
func FuzzParse(f *testing.F) {
	v, err := tree.Flatten(sample(2), tree.Rules{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v.Spec)
	f.Add("l\xff\xff\x03t")
	f.Add("m\x01s\x05abc")
	f.Fuzz(func(t *testing.T, spec string) {
		n, err := tree.Parse(spec)
		if err != nil {
			if !errors.Is(err, tree.ErrSpec) {
				t.Error(err)
			}
			return
		}
		again, err := tree.Parse(n.Spec())
		if err != nil || again.Spec() != n.Spec() {
			t.Errorf("%q: %v", spec, err)
		}
		var out any
		(tree.Value{Spec: spec, Tensors: []*tensor.Tensor{tensor.Scalar(tensor.Int64, 1)}}).Into(&out)
	})
}
