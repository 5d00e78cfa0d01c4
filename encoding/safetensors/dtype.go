package safetensors

import (
	"fmt"

	"github.com/shoal-mp/shoal/tensor"
)

// codes maps dtypes to their names in the format.
var codes = map[tensor.DType]string{
	tensor.Bool: "BOOL", tensor.Uint8: "U8", tensor.Int8: "I8", tensor.Int16: "I16", tensor.Int32: "I32",
	tensor.Int64:   "I64",
	tensor.Float16: "F16", tensor.BFloat16: "BF16", tensor.Float32: "F32", tensor.Float64: "F64",
	tensor.Complex64: "C64",
	tensor.Uint16:    "U16", tensor.Uint32: "U32", tensor.Uint64: "U64", tensor.Float8E4M3FN: "F8_E4M3",
	tensor.Float8E5M2: "F8_E5M2",
}

func parseCode(code string) (tensor.DType, error) {
	for dt, c := range codes {
		if c == code {
			return dt, nil
		}
	}
	return 0, fmt.Errorf("%w %q", ErrDType, code)
}
