package codec_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/shoal-mp/shoal/internal/codec"
)

type settings struct {
	Epochs int
	Rate   float64
	Layers map[string]int
}

// One value crosses: what ipc.Queue does for each Put and Get.
func Example() {
	plan, err := codec.PlanOf[settings]()
	if err != nil {
		fmt.Println(err) // a field cannot cross
		return
	}

	var e codec.Encoder
	e.Reset(nil)
	err = plan.Encode(&e, settings{3, 0.01, map[string]int{"hidden": 128}})
	e.Done(err == nil) // after the message was sent
	fmt.Printf("%x %v\n", e.Message().Body, err)

	var d codec.Decoder
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
	fmt.Println(codec.Check[job]())
	// Output:
	// job.Net.Log: func() cannot cross processes: pass a registered function by name, and its data as an argument
}

var errDivergence = errors.New("loss is not a number")

func init() { codec.RegisterError("example.errDivergence", errDivergence) }

func ExampleRegisterError() {
	m, _ := send(fmt.Errorf("epoch 3: %w", errDivergence))
	got, _ := receive(m)
	fmt.Println(got, errors.Is(got, errDivergence), errors.Is(got, fs.ErrNotExist))
	// Output:
	// epoch 3: loss is not a number true false
}

func send(failure error) (codec.Message, error) {
	plan, err := codec.PlanOf[error]()
	if err != nil {
		return codec.Message{}, err
	}
	var e codec.Encoder
	err = plan.Encode(&e, failure)
	e.Done(err == nil)
	return e.Message(), err
}

func receive(m codec.Message) (failure error, err error) {
	plan, err := codec.PlanOf[error]()
	if err != nil {
		return nil, err
	}
	var d codec.Decoder
	d.Reset(m, nil)
	failure, err = plan.Decode(&d)
	d.Done(err == nil)
	return failure, err
}
