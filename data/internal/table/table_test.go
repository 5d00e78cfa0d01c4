package table_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
)

type list = []any

// shown is a value with the types of its parts.
func shown(v any) string {
	switch v := v.(type) {
	case *tensor.Tensor:
		return fmt.Sprintf("%v%v%v", v.DType(), v.Shape(), tensor.Data[float64](v.To(tensor.Float64).Clone()))
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+":"+shown(v[name]))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case list:
		var parts []string
		for _, item := range v {
			parts = append(parts, shown(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("%T(%v)", v, v)
}

func TestTensors_AreListsOfNumbers(t *testing.T) {
	one, two := int64(1), int64(2)
	for want, v := range map[string]any{
		"int64(1)":                                 one,
		"string(x)":                                "x",
		"<nil>(<nil>)":                             nil,
		"int64[2][1 2]":                            list{one, two},
		"float32[2][1 0.5]":                        list{one, 0.5},
		"bool[2][1 0]":                             list{true, false},
		"int64[2][1 2] ":                           list{true, two},
		"float32[0][]":                             list{},
		"int64[2 2][1 2 2 1]":                      list{list{one, two}, list{two, one}},
		"[int64[1][1] int64[2][1 2]]":              list{list{one}, list{one, two}},
		"[int64(1) int64[1][1]]":                   list{one, list{one}},
		"[int64[1][1] int64(1)]":                   list{list{one}, one},
		"[string(a) int64(1)]":                     list{"a", one},
		"float32[2 0][]":                           list{list{}, list{}},
		"[float32[0][] int64[1][1]]":               list{list{}, list{one}},
		"[float32[0][] int64(1)]":                  list{list{}, one},
		"{a:int64[1][1] b:[string(x)] c:int64(2)}": map[string]any{"a": list{one}, "b": list{"x"}, "c": two},
	} {
		if got := shown(table.Tensors(v)); got != strings.TrimSpace(want) {
			t.Errorf("%v: %s, not %s", v, got, want)
		}
	}
	big := int64(1)<<53 + 1
	if got := tensor.Data[int64](table.Tensors(list{big}).(*tensor.Tensor))[0]; got != big {
		t.Errorf("%d became %d", big, got)
	}
	deep := any(one)
	for range 100 {
		deep = list{deep}
	}
	table.Tensors(deep)
}

func TestPick_AndSampleReturnWhatIsWanted(t *testing.T) {
	all := map[string]any{"ids": list{int64(1), int64(2)}, "weight": 0.5, "label": int64(3), "text": "x"}
	columns := []row.Column{{Name: "label"}, {Name: "ids", DType: new(tensor.Int32)},
		{Name: "weight", DType: new(tensor.Float32)}}
	picked, err := table.Pick(columns, all)
	if want := "{ids:int32[2][1 2] label:int64(3) weight:float32[][0.5]}"; err != nil || shown(picked) != want {
		t.Errorf("%s, %v: want %s", shown(picked), err, want)
	}
	if picked, err = table.Pick(nil, all); err != nil || len(picked) != 4 || picked["text"] != "x" {
		t.Errorf("all columns: %v, %v", picked, err)
	}
	sample, err := table.Sample(columns, all)
	if err != nil || len(sample) != 3 || sample[0].DType() != tensor.Int64 || sample[1].Numel() != 2 ||
		sample[2].DType() != tensor.Float32 {
		t.Errorf("a sample: %v, %v", sample, err)
	}
	delete(all, "text")
	if sample, err = table.Sample(nil, all); err != nil || len(sample) != 3 || sample[0].Numel() != 2 ||
		sample[2].DType() != tensor.Float64 {
		t.Errorf("a sample of all columns: %v, %v", sample, err)
	}
	for _, c := range []struct {
		columns []row.Column
		want    error
		text    string
	}{
		{[]row.Column{{Name: "lable"}}, row.ErrColumn, `"lable", want one of ["ids" "label" "weight"]`},
		{[]row.Column{{Name: "note"}}, row.ErrColumn, "note"},
	} {
		if _, err := table.Pick(c.columns, all); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.columns, err)
		}
	}
	all["text"] = "x"
	if _, err := table.Sample([]row.Column{{Name: "text"}}, all); !errors.Is(err, row.ErrKind) ||
		!strings.Contains(err.Error(), `"text"`) {
		t.Errorf("a text as a tensor: %v", err)
	}
	if _, err := table.Pick([]row.Column{{Name: "text", DType: new(tensor.Int64)}}, all); !errors.Is(err, row.ErrKind) {
		t.Errorf("a text as int64: %v", err)
	}
}
