// The part of the package that every call passes: it takes the memory of arrays, runs
// without the lock of the interpreter, and turns errors into exceptions. All else is
// in Python, over the same C library by ctypes.

#include <Python.h>

#include <bitcnn.h>

#include <stdint.h>
#include <string.h>

enum { MAX_DIMS = 32, MAX_TENSORS = 64 };

// What a tensor must be like.
typedef struct {
	char format; // of the buffer protocol
	int32_t dtype;
	int dims;
	Py_ssize_t dim[MAX_DIMS];
	size_t bytes; // of one image
} spec;

typedef struct {
	PyObject_HEAD
	bitcnn_session session;
	int64_t max_batch;
	int inputs, outputs;
	int as_is; // arrays have the order of the memory: model(x) takes them where they are
	spec *in, *out;
	PyObject *empty; // numpy.empty
	PyObject *dtype; // of the first output
	PyObject *masked; // numpy.ma.MaskedArray, whose buffer has what the mask hides
	// The arguments of empty for the output of the last call.
	PyObject *arguments;
	Py_ssize_t arguments_images;
} Runner;

static PyObject *kind_of(bitcnn_status status) {
	switch (status) {
	case BITCNN_NOT_FOUND:
		return PyExc_FileNotFoundError;
	case BITCNN_IO:
		return PyExc_OSError;
	case BITCNN_UNAVAILABLE:
	case BITCNN_FORKED:
		return PyExc_RuntimeError;
	case BITCNN_TOO_LARGE:
		return PyExc_MemoryError;
	case BITCNN_UNSUPPORTED:
		return PyExc_NotImplementedError;
	case BITCNN_INTERNAL:
		return PyExc_SystemError;
	default:
		return PyExc_ValueError;
	}
}

static PyObject *fail(bitcnn_status status) {
	PyErr_SetString(kind_of(status), bitcnn_last_error());
	return NULL;
}

// read_specs reads a tuple of (format, dimensions).
static int read_specs(PyObject *list, spec **specs, int *count) {
	Py_ssize_t n = PyTuple_Size(list);
	if (n < 1 || n > MAX_TENSORS || !(*specs = PyMem_Calloc((size_t)n, sizeof **specs))) {
		PyErr_SetString(PyExc_ValueError, "the model has more inputs or outputs than there may be");
		return -1;
	}
	*count = (int)n;
	for (Py_ssize_t i = 0; i < n; i++) {
		spec *s = &(*specs)[i];
		int format;
		PyObject *dims;
		if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "CO!", &format, &PyTuple_Type, &dims)) {
			return -1;
		}
		s->format = (char)format;
		s->dtype = format == 'f' ? BITCNN_FLOAT32 : BITCNN_UINT8;
		s->bytes = format == 'f' ? 4 : 1;
		s->dims = (int)PyTuple_Size(dims);
		if (s->dims > MAX_DIMS - 1) {
			PyErr_SetString(PyExc_ValueError, "an array has more dimensions than there may be");
			return -1;
		}
		for (int d = 0; d < s->dims; d++) {
			s->dim[d] = PyLong_AsSsize_t(PyTuple_GetItem(dims, d));
			if (PyErr_Occurred()) {
				return -1;
			}
			s->bytes *= (size_t)s->dim[d];
		}
	}
	return 0;
}

static int Runner_init(Runner *self, PyObject *arguments, PyObject *names) {
	unsigned long long session;
	long long max_batch;
	PyObject *in, *out, *empty, *dtype, *masked;
	(void)names;
	if (self->empty) {
		PyErr_SetString(PyExc_TypeError, "a model is made once");
		return -1;
	}
	if (!PyArg_ParseTuple(arguments, "KLO!O!OOOp", &session, &max_batch, &PyTuple_Type, &in, &PyTuple_Type, &out, &empty, &dtype, &masked, &self->as_is) ||
		read_specs(in, &self->in, &self->inputs) || read_specs(out, &self->out, &self->outputs)) {
		return -1;
	}
	self->session = session;
	self->max_batch = max_batch;
	self->empty = Py_NewRef(empty);
	self->dtype = Py_NewRef(dtype);
	self->masked = Py_NewRef(masked);
	return 0;
}

static int Runner_traverse(PyObject *object, visitproc visit, void *arg) {
	Runner *self = (Runner *)object;
	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->empty);
	Py_VISIT(self->dtype);
	Py_VISIT(self->masked);
	Py_VISIT(self->arguments);
	return 0;
}

static int Runner_clear(PyObject *object) {
	Runner *self = (Runner *)object;
	Py_CLEAR(self->empty);
	Py_CLEAR(self->dtype);
	Py_CLEAR(self->masked);
	Py_CLEAR(self->arguments);
	return 0;
}

static void Runner_dealloc(PyObject *object) {
	Runner *self = (Runner *)object;
	PyTypeObject *type = Py_TYPE(object);
	PyObject_GC_UnTrack(object);
	Runner_clear(object);
	PyMem_Free(self->in);
	PyMem_Free(self->out);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

// fits says how many images are in a buffer, if it is what s wants; *single tells one
// image without a batch. Otherwise it is -1.
static Py_ssize_t fits(const spec *s, const Py_buffer *view, int *single) {
	const char *format = view->format ? view->format : "B";
	if (*format == '@' || *format == '=') {
		format++;
	}
	if (format[0] != s->format || format[1] || (s->format == 'f' && (uintptr_t)view->buf % 4)) {
		return -1;
	}
	*single = view->ndim == s->dims;
	if (!*single && view->ndim != s->dims + 1) {
		return -1;
	}
	const Py_ssize_t *shape = view->shape + !*single;
	for (int d = 0; d < s->dims; d++) {
		if (shape[d] != s->dim[d]) {
			return -1;
		}
	}
	return *single ? 1 : view->shape[0];
}

// run runs the images of all buffers, as many at a time as the session takes.
static bitcnn_status run(const Runner *self, Py_ssize_t images, const Py_buffer *in, const Py_buffer *out) {
	bitcnn_tensor inputs[MAX_TENSORS], outputs[MAX_TENSORS];
	for (Py_ssize_t from = 0; from < images;) {
		Py_ssize_t n = images - from < self->max_batch ? images - from : (Py_ssize_t)self->max_batch;
		for (int i = 0; i < self->inputs; i++) {
			const spec *s = &self->in[i];
			inputs[i] = (bitcnn_tensor){(char *)in[i].buf + s->bytes * (size_t)from, s->bytes * (size_t)n, s->dtype, 0};
		}
		for (int i = 0; i < self->outputs; i++) {
			const spec *s = &self->out[i];
			outputs[i] = (bitcnn_tensor){(char *)out[i].buf + s->bytes * (size_t)from, s->bytes * (size_t)n, s->dtype, 0};
		}
		bitcnn_status status = bitcnn_run(self->session, n, inputs, (size_t)self->inputs, outputs, (size_t)self->outputs);
		if (status) {
			return status;
		}
		from += n;
	}
	return BITCNN_OK;
}

// new_output makes the array of an output. images is -1 for one without a batch.
static PyObject *new_output(Runner *self, const spec *s, Py_ssize_t images) {
	if (!self->arguments || self->arguments_images != images) {
		int batch = images >= 0;
		PyObject *shape = PyTuple_New(s->dims + batch);
		if (!shape) {
			return NULL;
		}
		for (int d = 0; d < s->dims + batch; d++) {
			PyObject *n = PyLong_FromSsize_t(batch && d == 0 ? images : s->dim[d - batch]);
			if (!n || PyTuple_SetItem(shape, d, n)) {
				Py_DECREF(shape);
				return NULL;
			}
		}
		PyObject *arguments = Py_BuildValue("(NO)", shape, self->dtype);
		if (!arguments) {
			return NULL;
		}
		PyObject *before = self->arguments;
		self->arguments = arguments;
		self->arguments_images = images;
		Py_XDECREF(before);
	}
	PyObject *arguments = Py_NewRef(self->arguments); // another thread may change it meanwhile
	PyObject *array = PyObject_CallObject(self->empty, arguments);
	Py_DECREF(arguments);
	return array;
}

// Runner_call is model(x). An array that is not as it must be is given to the method
// _adapt, which raises or returns one that is; _call is for tensors, and for models whose
// arrays have another order than the memory of a run.
static PyObject *Runner_call(PyObject *object, PyObject *arguments, PyObject *names) {
	Runner *self = (Runner *)object;
	if (!self->empty || self->inputs != 1 || self->outputs != 1 || PyTuple_Size(arguments) != 1 || names) {
		PyErr_SetString(PyExc_TypeError, "model(x) takes one array, of a model with one input and one output; run() takes several by name");
		return NULL;
	}
	PyObject *x = PyTuple_GetItem(arguments, 0), *adapted = NULL, *result = NULL;
	if (!self->as_is) {
		return PyObject_CallMethod(object, "_call", "O", x);
	}
	Py_buffer in, out;
	int single = 0;
	Py_ssize_t images = -1;
	for (int attempt = 0; images < 0; attempt++) {
		int masked = attempt == 0 ? PyObject_IsInstance(x, self->masked) : 0;
		if (masked < 0) {
			goto done;
		}
		if (!masked && PyObject_GetBuffer(x, &in, PyBUF_ND | PyBUF_FORMAT) == 0) {
			if ((images = fits(self->in, &in, &single)) >= 0) {
				break;
			}
			PyBuffer_Release(&in);
		} else if (!masked && PyErr_ExceptionMatches(PyExc_MemoryError)) {
			goto done;
		} else {
			PyErr_Clear();
		}
		// A tensor gets a tensor, and one of a device is no matter of this function.
		if (attempt == 0 && (PyObject_HasAttrString(x, "__torch_function__") || PyObject_HasAttrString(x, "__cuda_array_interface__"))) {
			return PyObject_CallMethod(object, "_call", "O", x);
		}
		if (attempt == 1) {
			PyErr_SetString(PyExc_SystemError, "an array that was adapted does not fit");
			goto done;
		}
		adapted = PyObject_CallMethod(object, "_adapt", "O", x);
		if (!adapted) {
			goto done;
		}
		x = adapted;
	}
	result = new_output(self, self->out, single ? -1 : images);
	if (result && PyObject_GetBuffer(result, &out, PyBUF_ND | PyBUF_WRITABLE)) {
		Py_CLEAR(result);
	}
	if (result) {
		bitcnn_status status;
		Py_BEGIN_ALLOW_THREADS
		status = run(self, images, &in, &out);
		Py_END_ALLOW_THREADS
		PyBuffer_Release(&out);
		if (status) {
			Py_CLEAR(result);
			fail(status);
		}
	}
	PyBuffer_Release(&in);
done:
	Py_XDECREF(adapted);
	return result;
}

// take gets the buffers of a tuple of arrays, all of the same number of images.
static int take(PyObject *arrays, const spec *specs, int count, int flags, Py_buffer *views, int *taken, Py_ssize_t *images) {
	if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != count) {
		PyErr_SetString(PyExc_TypeError, "want a tuple with an array for each");
		return -1;
	}
	for (int i = 0; i < count; i++) {
		if (PyObject_GetBuffer(PyTuple_GetItem(arrays, i), &views[i], PyBUF_ND | PyBUF_FORMAT | flags)) {
			return -1;
		}
		++*taken;
		int single;
		Py_ssize_t n = fits(&specs[i], &views[i], &single);
		if (n < 0 || (*images >= 0 && n != *images)) {
			PyErr_SetString(PyExc_ValueError, "wrong tensor: an array that does not fit the model, or the others");
			return -1;
		}
		*images = n;
	}
	return 0;
}

// Runner__run is _run(inputs, outputs) for arrays that have been looked at.
static PyObject *Runner__run(PyObject *object, PyObject *arguments) {
	Runner *self = (Runner *)object;
	PyObject *inputs, *outputs, *result = NULL;
	if (!PyArg_ParseTuple(arguments, "OO", &inputs, &outputs)) {
		return NULL;
	}
	Py_buffer in[MAX_TENSORS], out[MAX_TENSORS];
	int ins = 0, outs = 0;
	Py_ssize_t images = -1;
	if (take(inputs, self->in, self->inputs, 0, in, &ins, &images) == 0 &&
		take(outputs, self->out, self->outputs, PyBUF_WRITABLE, out, &outs, &images) == 0) {
		bitcnn_status status;
		Py_BEGIN_ALLOW_THREADS
		status = run(self, images, in, out);
		Py_END_ALLOW_THREADS
		if (status) {
			fail(status);
		} else {
			result = Py_NewRef(Py_None);
		}
	}
	while (ins > 0) {
		PyBuffer_Release(&in[--ins]);
	}
	while (outs > 0) {
		PyBuffer_Release(&out[--outs]);
	}
	return result;
}

// run_layer is run_layer(session, most, images, layout, x, x_bytes, out, out_bytes, weights,
// kept, weights_bytes), for addresses of float32 and bytes of one image: it runs a session
// of one layer, at the most so many images at a time, if the weights are those that were
// kept of it. The result says whether they were.
static PyObject *run_layer(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
	unsigned long long a[11];
	(void)module;
	if (count != (Py_ssize_t)(sizeof a / sizeof *a)) {
		PyErr_SetString(PyExc_TypeError, "run_layer takes 11 numbers");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		a[i] = PyLong_AsUnsignedLongLong(arguments[i]);
		if (a[i] == (unsigned long long)-1 && PyErr_Occurred()) {
			return NULL;
		}
	}
	unsigned long long most = a[1], images = a[2], x_bytes = a[5], out_bytes = a[7];
	int32_t layout = (int32_t)a[3];
	char *x = (char *)(uintptr_t)a[4], *out = (char *)(uintptr_t)a[6];
	bitcnn_status status = BITCNN_OK;
	int same;
	Py_BEGIN_ALLOW_THREADS
	same = memcmp((void *)(uintptr_t)a[8], (void *)(uintptr_t)a[9], a[10]) == 0;
	for (unsigned long long from = 0; same && !status && from < images; from += most) {
		unsigned long long n = images - from < most ? images - from : most;
		bitcnn_tensor in = {x + from * x_bytes, n * x_bytes, BITCNN_FLOAT32, layout};
		bitcnn_tensor to = {out + from * out_bytes, n * out_bytes, BITCNN_FLOAT32, layout};
		status = bitcnn_run(a[0], (int64_t)n, &in, 1, &to, 1);
	}
	Py_END_ALLOW_THREADS
	return status ? fail(status) : PyBool_FromLong(same);
}

static PyObject *raise_status(PyObject *module, PyObject *arguments) {
	int status;
	(void)module;
	return PyArg_ParseTuple(arguments, "i", &status) ? fail((bitcnn_status)status) : NULL;
}

static PyMethodDef runner_methods[] = {
	{"_run", Runner__run, METH_VARARGS, "Runs arrays into arrays."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot runner_slots[] = {
	{Py_tp_doc, "A session of the C library with what it takes and gives."},
	{Py_tp_init, Runner_init},
	{Py_tp_call, Runner_call},
	{Py_tp_traverse, Runner_traverse},
	{Py_tp_clear, Runner_clear},
	{Py_tp_dealloc, Runner_dealloc},
	{Py_tp_methods, runner_methods},
	{0, NULL},
};

static PyType_Spec runner_spec = {
	.name = "bitcnn._core.Runner",
	.basicsize = sizeof(Runner),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = runner_slots,
};

static int start(PyObject *module) {
	PyObject *type = PyType_FromModuleAndSpec(module, &runner_spec, NULL);
	if (!type) {
		return -1;
	}
	int failed = PyModule_AddType(module, (PyTypeObject *)type);
	Py_DECREF(type);
	return failed;
}

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, start},
	{0, NULL},
};

static PyMethodDef functions[] = {
	{"run_layer", (PyCFunction)(void (*)(void))run_layer, METH_FASTCALL, "Runs a layer if its weights have not changed."},
	{"raise_status", raise_status, METH_VARARGS, "Raises the last error of this thread."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "bitcnn._core",
	.m_methods = functions,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
