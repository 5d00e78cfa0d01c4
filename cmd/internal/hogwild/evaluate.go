package hogwild

import (
	"context"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// pixels converts uint8 images to normalized floats, as the PyTorch example does.
var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

// evaluate returns the mean loss over a set and the number of correct predictions. It switches net
// to evaluation mode.
func evaluate(ctx context.Context, net *Net, set *data.TensorDataset, batchSize int) (loss float64,
	correct int, err error) {
	loader := data.NewLoader(set, data.Options{BatchSize: batchSize, Transform: pixels})
	defer loader.Close()
	scope := autograd.NewScope()
	nn.Eval(net)
	for batch, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, 0, err
		}
		images, labels := batch[0], batch[1]
		logp := net.Forward(scope.NoGrad(images))
		loss += nn.NLLLoss{}.Of(logp, labels).Item() * float64(labels.Numel())
		correct += countHits(logp.T(), labels)
		scope.Reset()
		batch.Close()
	}
	return loss / float64(max(1, set.Len())), correct, nil
}

// countHits returns the number of rows of logp, of shape (n, classes), with their maximum at the
// label.
func countHits(logp, labels *tensor.Tensor) int {
	return int(tensor.Eq(tensor.Argmax(logp, 1), labels).Sum())
}
