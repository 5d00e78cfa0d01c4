package datasets

import "github.com/shoal-mp/shoal/internal/wire"

// A type must be given to Custom before a type that contains it is registered, so all is done here.
func init() {
	wire.Custom((*List).marshal, (*List).unmarshal)
	wire.Custom((*Map).marshal, (*Map).unmarshal)
	wire.RegisterType[*ImageFolder]("data.ImageFolder")
	wire.RegisterType[*hdf5Rows]("datasets.hdf5Rows")
	wire.RegisterType[ImageDecoder]("data.ImageDecoder")
	wire.RegisterType[*shards]("datasets.shards")
}
