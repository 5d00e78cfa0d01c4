package wire_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/shoal-mp/shoal/internal/wire"
)

type settings struct {
	Epochs int
	Rate   float64
	Layers map[string]int
}

// One value crosses: what ipc.Queue does for each Put and Get.
func Example() {
	plan, err := wire.PlanOf[settings]()
	if err != nil {
		fmt.Println(err) // a field cannot cross
		return
	}

	var e wire.Encoder
	e.Reset(nil)
	err = plan.Encode(&e, settings{3, 0.01, map[string]int{"hidden": 128}})
	e.Done(err == nil) // after the message was sent
	fmt.Printf("%x %v\n", e.Message().Body, err)

	var d wire.Decoder
	d.Reset(e.Message(), nil) // nil: a message with blocks would be refused
	got, err := plan.Decode(&d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	fmt.Println(got, err)
	// Output:
	// 9303cb3f847ae147ae147b81a668696464656ecc80 <nil>
	// {3 0.01 map[hidden:128]} <nil>
}

func ExampleCheck() {
	type net struct{ Log func() }
	type job struct{ Net net }
	fmt.Println(wire.Check[job]())
	// Output:
	// job.Net.Log: func() cannot cross processes: a function crosses by its registered name, its data as an argument
}

var errDivergence = errors.New("loss is not a number")

func init() { wire.RegisterError("example.errDivergence", errDivergence) }

func ExampleRegisterError() {
	m, _ := send(fmt.Errorf("epoch 3: %w", errDivergence))
	got, _ := receive(m)
	fmt.Println(got, errors.Is(got, errDivergence), errors.Is(got, fs.ErrNotExist))
	// Output:
	// epoch 3: loss is not a number true false
}

func send(failure error) (wire.Message, error) {
	plan, err := wire.PlanOf[error]()
	if err != nil {
		return wire.Message{}, err
	}
	var e wire.Encoder
	err = plan.Encode(&e, failure)
	e.Done(err == nil)
	return e.Message(), err
}

func receive(m wire.Message) (failure error, err error) {
	plan, err := wire.PlanOf[error]()
	if err != nil {
		return nil, err
	}
	var d wire.Decoder
	d.Reset(m, nil)
	failure, err = plan.Decode(&d)
	d.Done(err == nil)
	return failure, err
}
