package hogwild

import "errors"

var (
	// ErrOption is wrapped where an option makes no sense.
	ErrOption = errors.New("hogwild: bad option")
	// ErrDownload is wrapped where the files of the data set could not be fetched.
	ErrDownload = errors.New("hogwild: not downloaded")
	// ErrSave is wrapped where the trained network could not be written to the file that was asked
	// for.
	ErrSave = errors.New("hogwild: model not saved where it should be")
	// ErrUnread is returned where the reader of the output has left.
	ErrUnread = errors.New("hogwild: nobody reads the output any more")
)
