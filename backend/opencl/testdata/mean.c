// A layer for OpenCL's loader (OPENCL_LAYERS=mean.so, ocl-icd and Khronos's) that makes a driver
// refuse what some drivers refuse. BCNN_MEAN lists what, separated by commas; it is read at each
// call, so that a test can change it:
//
//	queue        queues that tell times: CL_INVALID_QUEUE_PROPERTIES
//	queues:N     the N-th queue that is there at the same time, and more: CL_OUT_OF_RESOURCES
//	times        times of events: CL_PROFILING_INFO_NOT_AVAILABLE
//	zero         times of events are 0
//	kernel:N     work-groups of a kernel have N work-items at most, and launches beyond are refused
//	group:N      launches with larger work-groups: CL_INVALID_WORK_GROUP_SIZE, unannounced
//	groupis:N    launches with work-groups of just this size: the code
//	buffer:N     buffers of more than N bytes: CL_MEM_OBJECT_ALLOCATION_FAILURE
//	lazy:N       such buffers are refused when a kernel that takes them is launched
//	hostptr      buffers in memory of the host: CL_MEM_OBJECT_ALLOCATION_FAILURE
//	map          mapping a buffer: CL_MAP_FAILURE
//	build:NAME   programs with a kernel of that name, "all" for all: CL_BUILD_PROGRAM_FAILURE
//	nolog        the log of such a build: CL_INVALID_PROGRAM
//	create:NAME  the kernel of that name: CL_OUT_OF_HOST_MEMORY
//	launch:NAME  launches of the kernel of that name, "all" for all: the code
//	once:N       the N-th launch since BCNN_MEAN was last another: the code
//	lost:N       from the N-th launch on, all work on queues: CL_OUT_OF_RESOURCES
//	code:C       the code, -5 (CL_OUT_OF_RESOURCES) by default
#define _GNU_SOURCE
#include <CL/cl.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The places of functions in the table that loaders and drivers share (CL/cl_icd.h); a test
// compares them with the system's header.
enum {
	PLACE_clCreateCommandQueue = 9,
	PLACE_clReleaseCommandQueue = 11,
	PLACE_clCreateBuffer = 14,
	PLACE_clReleaseMemObject = 18,
	PLACE_clCreateProgramWithSource = 26,
	PLACE_clReleaseProgram = 29,
	PLACE_clBuildProgram = 30,
	PLACE_clGetProgramBuildInfo = 33,
	PLACE_clCreateKernel = 34,
	PLACE_clReleaseKernel = 37,
	PLACE_clSetKernelArg = 38,
	PLACE_clGetKernelWorkGroupInfo = 40,
	PLACE_clGetEventProfilingInfo = 45,
	PLACE_clFinish = 47,
	PLACE_clEnqueueReadBuffer = 48,
	PLACE_clEnqueueWriteBuffer = 49,
	PLACE_clEnqueueMapBuffer = 56,
	PLACE_clEnqueueNDRangeKernel = 59,
	PLACES = 512, // more than there are
};

static void *mine[PLACES];
static void *const *next;
#define NEXT(name) ((__typeof__(&name))next[PLACE_##name])

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static char last[200];                                    // BCNN_MEAN as it was
static long launches, queues;

// Objects that are refused when they are used, and names of kernels.
static struct { void *object; char name[64]; } noted[8192];
static int count;

static void note(void *object, const char *name)
{
	pthread_mutex_lock(&mutex);
	if (object && count < 8192) {
		noted[count].object = object;
		snprintf(noted[count++].name, sizeof noted[0].name, "%s", name);
	}
	pthread_mutex_unlock(&mutex);
}
// is reports whether an object was noted with a name.
static int is(void *object, const char *name)
{
	int found = 0;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < count && !found; i++)
		found = noted[i].object == object && !strcmp(noted[i].name, name);
	pthread_mutex_unlock(&mutex);
	return found;
}
static void forget(void *object)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < count; i++)
		if (noted[i].object == object)
			noted[i--] = noted[--count];
	pthread_mutex_unlock(&mutex);
}

// setting returns what stands behind "name:" in BCNN_MEAN, "" if there is the name alone, or 0.
static const char *setting(const char *name)
{
	const char *at = getenv("BCNN_MEAN");
	const size_t n = strlen(name);
	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : 0)
		if (!strncmp(at, name, n) && (!at[n] || at[n] == ',' || at[n] == ':'))
			return at + n + (at[n] == ':');
	return 0;
}
static long number(const char *name, long otherwise)
{
	const char *s = setting(name);
	return s ? atol(s) : otherwise;
}
// named reports whether the setting has this name, or "all".
static int named(const char *what, const char *name)
{
	const char *s = setting(what);
	const size_t n = s ? strcspn(s, ",") : 0;
	return s && ((n == strlen(name) && !strncmp(s, name, n)) || (n == 3 && !strncmp(s, "all", 3)));
}
static cl_int code(void) { return (cl_int)number("code", CL_OUT_OF_RESOURCES); }
static const long many = 1L << 60;

static cl_command_queue create_queue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *e)
{
	cl_int why = setting("queue") && p & CL_QUEUE_PROFILING_ENABLE ? CL_INVALID_QUEUE_PROPERTIES
		: queues + 1 >= number("queues", many) ? CL_OUT_OF_RESOURCES : 0;
	if (why) {
		*e = why;
		return 0;
	}
	cl_command_queue q = NEXT(clCreateCommandQueue)(c, d, p, e);
	queues += q != 0;
	return q;
}
static cl_int release_queue(cl_command_queue q)
{
	queues--;
	return NEXT(clReleaseCommandQueue)(q);
}

static cl_int profiling(cl_event ev, cl_profiling_info i, size_t n, void *v, size_t *r)
{
	if (setting("times"))
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	cl_int code = NEXT(clGetEventProfilingInfo)(ev, i, n, v, r);
	if (setting("zero") && !code && v && n >= 8)
		memset(v, 0, 8);
	return code;
}

static cl_int work_group_info(cl_kernel k, cl_device_id d, cl_kernel_work_group_info i, size_t n, void *v, size_t *r)
{
	cl_int code = NEXT(clGetKernelWorkGroupInfo)(k, d, i, n, v, r);
	if (!code && i == CL_KERNEL_WORK_GROUP_SIZE && v && *(size_t *)v > (size_t)number("kernel", many))
		*(size_t *)v = number("kernel", many);
	return code;
}

static cl_mem create_buffer(cl_context c, cl_mem_flags f, size_t n, void *p, cl_int *e)
{
	if ((long)n > number("buffer", many) || (setting("hostptr") && f & CL_MEM_ALLOC_HOST_PTR)) {
		*e = CL_MEM_OBJECT_ALLOCATION_FAILURE;
		return 0;
	}
	cl_mem m = NEXT(clCreateBuffer)(c, f, n, p, e);
	if ((long)n > number("lazy", many))
		note(m, "large");
	return m;
}
static cl_int release_buffer(cl_mem m)
{
	forget(m);
	return NEXT(clReleaseMemObject)(m);
}

static cl_int set_arg(cl_kernel k, cl_uint i, size_t n, const void *v)
{
	char place[20];
	snprintf(place, sizeof place, "large %u", i);
	if (v && n == sizeof(cl_mem) && is(*(cl_mem *)v, "large"))
		note(k, place);
	else
		while (is(k, place)) { // another takes its place
			pthread_mutex_lock(&mutex);
			for (int j = 0; j < count; j++)
				if (noted[j].object == k && !strcmp(noted[j].name, place))
					noted[j--] = noted[--count];
			pthread_mutex_unlock(&mutex);
		}
	return NEXT(clSetKernelArg)(k, i, n, v);
}

static cl_program create_program(cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *e)
{
	cl_program p = NEXT(clCreateProgramWithSource)(c, n, s, l, e);
	if (!p || !setting("build"))
		return p;
	char *text = l && l[0] ? strndup(s[0], l[0]) : strdup(s[0]), name[64];
	for (char *at = strstr(text, "__kernel"); at; at = strstr(at + 1, "__kernel"))
		if ((at = strstr(at, "void ")) && sscanf(at, "void %63[a-z_0-9](", name) == 1 && named("build", name)) {
			note(p, "bad");
			break;
		}
	free(text);
	return p;
}
static cl_int build(cl_program p, cl_uint n, const cl_device_id *d, const char *o, void (*f)(cl_program, void *), void *u)
{
	return is(p, "bad") ? CL_BUILD_PROGRAM_FAILURE : NEXT(clBuildProgram)(p, n, d, o, f, u);
}
static cl_int build_info(cl_program p, cl_device_id d, cl_program_build_info i, size_t n, void *v, size_t *r)
{
	static const char log[] = "refused for a test";
	if (!is(p, "bad") || i != CL_PROGRAM_BUILD_LOG)
		return NEXT(clGetProgramBuildInfo)(p, d, i, n, v, r);
	if (setting("nolog"))
		return CL_INVALID_PROGRAM;
	if (r)
		*r = sizeof log;
	if (v && n < sizeof log)
		return CL_INVALID_VALUE;
	if (v)
		memcpy(v, log, sizeof log);
	return CL_SUCCESS;
}
static cl_int release_program(cl_program p)
{
	forget(p);
	return NEXT(clReleaseProgram)(p);
}

static cl_kernel create_kernel(cl_program p, const char *name, cl_int *e)
{
	if (named("create", name)) {
		*e = CL_OUT_OF_HOST_MEMORY;
		return 0;
	}
	cl_kernel k = NEXT(clCreateKernel)(p, name, e);
	if (named("launch", name))
		note(k, "refused");
	return k;
}
static cl_int release_kernel(cl_kernel k)
{
	forget(k);
	return NEXT(clReleaseKernel)(k);
}

// lost reports whether the device has gone.
static int lost(int launch)
{
	const char *now = getenv("BCNN_MEAN");
	pthread_mutex_lock(&mutex);
	if (strncmp(last, now ? now : "", sizeof last - 1)) {
		snprintf(last, sizeof last, "%s", now ? now : "");
		launches = 0;
	}
	launches += launch;
	const int gone = launches >= number("lost", many);
	pthread_mutex_unlock(&mutex);
	return gone;
}

static cl_int launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *off, const size_t *global, const size_t *local,
	cl_uint n, const cl_event *list, cl_event *ev)
{
	long size = 1;
	for (cl_uint i = 0; local && i < dim; i++)
		size *= local[i];
	if (lost(1))
		return CL_OUT_OF_RESOURCES;
	if (launches == number("once", 0) || size == number("groupis", 0) || is(k, "refused"))
		return code();
	if (size > number("group", many) || size > number("kernel", many))
		return CL_INVALID_WORK_GROUP_SIZE;
	for (cl_uint i = 0; i < 16; i++) {
		char place[20];
		snprintf(place, sizeof place, "large %u", i);
		if (is(k, place))
			return CL_MEM_OBJECT_ALLOCATION_FAILURE;
	}
	return NEXT(clEnqueueNDRangeKernel)(q, k, dim, off, global, local, n, list, ev);
}

static cl_int write_buffer(cl_command_queue q, cl_mem b, cl_bool w, size_t o, size_t n, const void *p, cl_uint m, const cl_event *l, cl_event *e)
{
	return lost(0) ? CL_OUT_OF_RESOURCES : NEXT(clEnqueueWriteBuffer)(q, b, w, o, n, p, m, l, e);
}
static cl_int read_buffer(cl_command_queue q, cl_mem b, cl_bool w, size_t o, size_t n, void *p, cl_uint m, const cl_event *l, cl_event *e)
{
	return lost(0) ? CL_OUT_OF_RESOURCES : NEXT(clEnqueueReadBuffer)(q, b, w, o, n, p, m, l, e);
}
static void *map_buffer(cl_command_queue q, cl_mem b, cl_bool w, cl_map_flags f, size_t o, size_t n, cl_uint m, const cl_event *l, cl_event *e, cl_int *c)
{
	cl_int why = lost(0) ? CL_OUT_OF_RESOURCES : setting("map") ? CL_MAP_FAILURE : 0;
	if (why) {
		*c = why;
		return 0;
	}
	return NEXT(clEnqueueMapBuffer)(q, b, w, f, o, n, m, l, e, c);
}
static cl_int finish(cl_command_queue q) { return lost(0) ? CL_OUT_OF_RESOURCES : NEXT(clFinish)(q); }

// What a loader asks of a layer (CL/cl_layer.h).

__attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_uint i, size_t n, void *v, size_t *r)
{
	if (i != 0x4240) // the version of the interface
		return CL_INVALID_VALUE;
	if (r)
		*r = sizeof(cl_uint);
	if (v && n >= sizeof(cl_uint))
		*(cl_uint *)v = 100;
	return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int clInitLayer(cl_uint n, void *const *target, cl_uint *r, void *const **layer)
{
	next = target;
	if (n > PLACES || n <= PLACE_clEnqueueNDRangeKernel)
		return CL_INVALID_VALUE;
	memcpy(mine, target, n * sizeof(void *));
	const struct { int place; void *function; } table[] = {
		{PLACE_clCreateCommandQueue, create_queue}, {PLACE_clReleaseCommandQueue, release_queue},
		{PLACE_clGetEventProfilingInfo, profiling}, {PLACE_clGetKernelWorkGroupInfo, work_group_info},
		{PLACE_clCreateBuffer, create_buffer}, {PLACE_clReleaseMemObject, release_buffer}, {PLACE_clSetKernelArg, set_arg},
		{PLACE_clCreateProgramWithSource, create_program}, {PLACE_clBuildProgram, build},
		{PLACE_clGetProgramBuildInfo, build_info}, {PLACE_clReleaseProgram, release_program},
		{PLACE_clCreateKernel, create_kernel}, {PLACE_clReleaseKernel, release_kernel},
		{PLACE_clEnqueueNDRangeKernel, launch}, {PLACE_clEnqueueWriteBuffer, write_buffer},
		{PLACE_clEnqueueReadBuffer, read_buffer}, {PLACE_clEnqueueMapBuffer, map_buffer}, {PLACE_clFinish, finish},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		mine[table[i].place] = table[i].function;
	*layer = mine;
	*r = n;
	return CL_SUCCESS;
}
