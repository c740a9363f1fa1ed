// The part of the OpenCL 1.2 interface that go-opencl and this package use, so
// that neither headers nor a loader need be installed to build. A test compares
// it with the system's headers where there are any.
#ifndef BITCNN_CL_H
#define BITCNN_CL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef int64_t cl_long;
typedef uint64_t cl_ulong;

typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

typedef cl_bitfield cl_device_type, cl_device_fp_config, cl_device_exec_capabilities;
typedef cl_bitfield cl_command_queue_properties, cl_mem_flags, cl_map_flags;
typedef cl_uint cl_platform_info, cl_device_info, cl_device_mem_cache_type, cl_device_local_mem_type;
typedef cl_uint cl_channel_order, cl_channel_type, cl_mem_object_type;
typedef cl_uint cl_program_build_info, cl_program_info, cl_kernel_info, cl_kernel_arg_info, cl_kernel_work_group_info;
typedef cl_uint cl_profiling_info;
typedef intptr_t cl_context_properties;

typedef struct _cl_image_format {
	cl_channel_order image_channel_order;
	cl_channel_type image_channel_data_type;
} cl_image_format;

typedef struct _cl_image_desc {
	cl_mem_object_type image_type;
	size_t image_width, image_height, image_depth, image_array_size;
	size_t image_row_pitch, image_slice_pitch;
	cl_uint num_mip_levels, num_samples;
	cl_mem buffer;
} cl_image_desc;

#define CL_BUILD_PROGRAM_FAILURE -11
#define CL_COMPILER_NOT_AVAILABLE -3
#define CL_COMPILE_PROGRAM_FAILURE -15
#define CL_DEVICE_NOT_AVAILABLE -2
#define CL_DEVICE_NOT_FOUND -1
#define CL_DEVICE_PARTITION_FAILED -18
#define CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST -14
#define CL_IMAGE_FORMAT_MISMATCH -9
#define CL_IMAGE_FORMAT_NOT_SUPPORTED -10
#define CL_INVALID_ARG_INDEX -49
#define CL_INVALID_ARG_SIZE -51
#define CL_INVALID_ARG_VALUE -50
#define CL_INVALID_BINARY -42
#define CL_INVALID_BUFFER_SIZE -61
#define CL_INVALID_BUILD_OPTIONS -43
#define CL_INVALID_COMMAND_QUEUE -36
#define CL_INVALID_COMPILER_OPTIONS -66
#define CL_INVALID_CONTEXT -34
#define CL_INVALID_DEVICE -33
#define CL_INVALID_DEVICE_PARTITION_COUNT -68
#define CL_INVALID_DEVICE_TYPE -31
#define CL_INVALID_EVENT -58
#define CL_INVALID_EVENT_WAIT_LIST -57
#define CL_INVALID_GLOBAL_OFFSET -56
#define CL_INVALID_GLOBAL_WORK_SIZE -63
#define CL_INVALID_GL_OBJECT -60
#define CL_INVALID_HOST_PTR -37
#define CL_INVALID_IMAGE_DESCRIPTOR -65
#define CL_INVALID_IMAGE_FORMAT_DESCRIPTOR -39
#define CL_INVALID_IMAGE_SIZE -40
#define CL_INVALID_KERNEL -48
#define CL_INVALID_KERNEL_ARGS -52
#define CL_INVALID_KERNEL_DEFINITION -47
#define CL_INVALID_KERNEL_NAME -46
#define CL_INVALID_LINKER_OPTIONS -67
#define CL_INVALID_MEM_OBJECT -38
#define CL_INVALID_MIP_LEVEL -62
#define CL_INVALID_OPERATION -59
#define CL_INVALID_PLATFORM -32
#define CL_INVALID_PROGRAM -44
#define CL_INVALID_PROGRAM_EXECUTABLE -45
#define CL_INVALID_PROPERTY -64
#define CL_INVALID_QUEUE_PROPERTIES -35
#define CL_INVALID_SAMPLER -41
#define CL_INVALID_VALUE -30
#define CL_INVALID_WORK_DIMENSION -53
#define CL_INVALID_WORK_GROUP_SIZE -54
#define CL_INVALID_WORK_ITEM_SIZE -55
#define CL_KERNEL_ARG_INFO_NOT_AVAILABLE -19
#define CL_LINKER_NOT_AVAILABLE -16
#define CL_LINK_PROGRAM_FAILURE -17
#define CL_MAP_FAILURE -12
#define CL_MEM_COPY_OVERLAP -8
#define CL_MEM_OBJECT_ALLOCATION_FAILURE -4
#define CL_MISALIGNED_SUB_BUFFER_OFFSET -13
#define CL_OUT_OF_HOST_MEMORY -6
#define CL_OUT_OF_RESOURCES -5
#define CL_PROFILING_INFO_NOT_AVAILABLE -7
#define CL_A 0x10b1
#define CL_ARGB 0x10b7
#define CL_BGRA 0x10b6
#define CL_COMPLETE 0
#define CL_DEPTH 0x10bd
#define CL_DEPTH_STENCIL 0x10be
#define CL_DEVICE_ADDRESS_BITS 0x100d
#define CL_DEVICE_AVAILABLE 0x1027
#define CL_DEVICE_BUILT_IN_KERNELS 0x103f
#define CL_DEVICE_COMPILER_AVAILABLE 0x1028
#define CL_DEVICE_DOUBLE_FP_CONFIG 0x1032
#define CL_DEVICE_ENDIAN_LITTLE 0x1026
#define CL_DEVICE_ERROR_CORRECTION_SUPPORT 0x1024
#define CL_DEVICE_EXECUTION_CAPABILITIES 0x1029
#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE 0x101d
#define CL_DEVICE_GLOBAL_MEM_CACHE_SIZE 0x101e
#define CL_DEVICE_GLOBAL_MEM_CACHE_TYPE 0x101c
#define CL_DEVICE_GLOBAL_MEM_SIZE 0x101f
#define CL_DEVICE_HALF_FP_CONFIG 0x1033
#define CL_DEVICE_HOST_UNIFIED_MEMORY 0x1035
#define CL_DEVICE_IMAGE2D_MAX_HEIGHT 0x1012
#define CL_DEVICE_IMAGE2D_MAX_WIDTH 0x1011
#define CL_DEVICE_IMAGE3D_MAX_DEPTH 0x1015
#define CL_DEVICE_IMAGE3D_MAX_HEIGHT 0x1014
#define CL_DEVICE_IMAGE3D_MAX_WIDTH 0x1013
#define CL_DEVICE_IMAGE_MAX_ARRAY_SIZE 0x1041
#define CL_DEVICE_IMAGE_MAX_BUFFER_SIZE 0x1040
#define CL_DEVICE_IMAGE_SUPPORT 0x1016
#define CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR 0x1073
#define CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR 1
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#define CL_DEVICE_TOPOLOGY_AMD 0x4037
#define CL_DEVICE_LINKER_AVAILABLE 0x103e
#define CL_DEVICE_LOCAL_MEM_SIZE 0x1023
#define CL_DEVICE_LOCAL_MEM_TYPE 0x1022
#define CL_DEVICE_MAX_CLOCK_FREQUENCY 0x100c
#define CL_DEVICE_MAX_COMPUTE_UNITS 0x1002
#define CL_DEVICE_MAX_CONSTANT_ARGS 0x1021
#define CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE 0x1020
#define CL_DEVICE_MAX_MEM_ALLOC_SIZE 0x1010
#define CL_DEVICE_MAX_PARAMETER_SIZE 0x1017
#define CL_DEVICE_MAX_READ_IMAGE_ARGS 0x100e
#define CL_DEVICE_MAX_SAMPLERS 0x1018
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004
#define CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS 0x1003
#define CL_DEVICE_MAX_WORK_ITEM_SIZES 0x1005
#define CL_DEVICE_MAX_WRITE_IMAGE_ARGS 0x100f
#define CL_DEVICE_MEM_BASE_ADDR_ALIGN 0x1019
#define CL_DEVICE_NAME 0x102b
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR 0x1036
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE 0x103b
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT 0x103a
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF 0x103c
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_INT 0x1038
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG 0x1039
#define CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT 0x1037
#define CL_DEVICE_OPENCL_C_VERSION 0x103d
#define CL_DEVICE_PARENT_DEVICE 0x1042
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR 0x1006
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE 0x100b
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT 0x100a
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF 0x1034
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT 0x1008
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG 0x1009
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT 0x1007
#define CL_DEVICE_PROFILE 0x102e
#define CL_DEVICE_PROFILING_TIMER_RESOLUTION 0x1025
#define CL_DEVICE_SINGLE_FP_CONFIG 0x101b
#define CL_DEVICE_TYPE 0x1000
#define CL_DEVICE_TYPE_ACCELERATOR 8
#define CL_DEVICE_TYPE_ALL 0xffffffff
#define CL_DEVICE_TYPE_CPU 2
#define CL_DEVICE_TYPE_DEFAULT 1
#define CL_DEVICE_TYPE_GPU 4
#define CL_DEVICE_VENDOR 0x102c
#define CL_DEVICE_VERSION 0x102f
#define CL_DRIVER_VERSION 0x102d
#define CL_EXEC_KERNEL 1
#define CL_EXEC_NATIVE_KERNEL 2
#define CL_FALSE 0
#define CL_FLOAT 0x10de
#define CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT 0x80
#define CL_FP_DENORM 1
#define CL_FP_FMA 0x20
#define CL_FP_INF_NAN 2
#define CL_FP_ROUND_TO_INF 0x10
#define CL_FP_ROUND_TO_NEAREST 4
#define CL_FP_ROUND_TO_ZERO 8
#define CL_FP_SOFT_FLOAT 0x40
#define CL_GLOBAL 2
#define CL_HALF_FLOAT 0x10dd
#define CL_INTENSITY 0x10b8
#define CL_KERNEL_ARG_NAME 0x119a
#define CL_KERNEL_NUM_ARGS 0x1191
#define CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE 0x11b3
#define CL_KERNEL_WORK_GROUP_SIZE 0x11b0
#define CL_LOCAL 1
#define CL_LUMINANCE 0x10b9
#define CL_MAP_READ 1
#define CL_MAP_WRITE 2
#define CL_MAP_WRITE_INVALIDATE_REGION 4
#define CL_MEM_ALLOC_HOST_PTR 0x10
#define CL_MEM_COPY_HOST_PTR 0x20
#define CL_MEM_HOST_NO_ACCESS 0x200
#define CL_MEM_HOST_READ_ONLY 0x100
#define CL_MEM_HOST_WRITE_ONLY 0x80
#define CL_MEM_OBJECT_BUFFER 0x10f0
#define CL_MEM_OBJECT_IMAGE1D 0x10f4
#define CL_MEM_OBJECT_IMAGE1D_ARRAY 0x10f5
#define CL_MEM_OBJECT_IMAGE1D_BUFFER 0x10f6
#define CL_MEM_OBJECT_IMAGE2D 0x10f1
#define CL_MEM_OBJECT_IMAGE2D_ARRAY 0x10f3
#define CL_MEM_OBJECT_IMAGE3D 0x10f2
#define CL_MEM_READ_ONLY 4
#define CL_MEM_READ_WRITE 1
#define CL_MEM_USE_HOST_PTR 8
#define CL_MEM_WRITE_ONLY 2
#define CL_NONE 0
#define CL_PLATFORM_EXTENSIONS 0x904
#define CL_PLATFORM_NAME 0x902
#define CL_PLATFORM_PROFILE 0x900
#define CL_PLATFORM_VENDOR 0x903
#define CL_PLATFORM_VERSION 0x901
#define CL_PROFILING_COMMAND_END 0x1283
#define CL_PROFILING_COMMAND_QUEUED 0x1280
#define CL_PROFILING_COMMAND_START 0x1282
#define CL_PROFILING_COMMAND_SUBMIT 0x1281
#define CL_PROGRAM_BINARIES 0x1166
#define CL_PROGRAM_BINARY_SIZES 0x1165
#define CL_PROGRAM_BUILD_LOG 0x1183
#define CL_QUEUED 3
#define CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE 1
#define CL_QUEUE_PROFILING_ENABLE 2
#define CL_R 0x10b0
#define CL_RA 0x10b3
#define CL_READ_ONLY_CACHE 1
#define CL_READ_WRITE_CACHE 2
#define CL_RG 0x10b2
#define CL_RGB 0x10b4
#define CL_RGBA 0x10b5
#define CL_RGBx 0x10bc
#define CL_RGx 0x10bb
#define CL_RUNNING 1
#define CL_Rx 0x10ba
#define CL_SIGNED_INT16 0x10d8
#define CL_SIGNED_INT32 0x10d9
#define CL_SIGNED_INT8 0x10d7
#define CL_SNORM_INT16 0x10d1
#define CL_SNORM_INT8 0x10d0
#define CL_SUBMITTED 2
#define CL_SUCCESS 0
#define CL_TRUE 1
#define CL_UNORM_INT16 0x10d3
#define CL_UNORM_INT24 0x10df
#define CL_UNORM_INT8 0x10d2
#define CL_UNORM_INT_101010 0x10d6
#define CL_UNORM_SHORT_555 0x10d5
#define CL_UNORM_SHORT_565 0x10d4
#define CL_UNSIGNED_INT16 0x10db
#define CL_UNSIGNED_INT32 0x10dc
#define CL_UNSIGNED_INT8 0x10da

// Lists of the events to wait for come with every enqueued command.
#define WAIT cl_uint, const cl_event *, cl_event *

cl_int clGetPlatformIDs(cl_uint, cl_platform_id *, cl_uint *);
cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
cl_int clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
cl_int clGetDeviceInfo(cl_device_id, cl_device_info, size_t, void *, size_t *);
cl_context clCreateContext(const cl_context_properties *, cl_uint, const cl_device_id *,
	void (*)(const char *, const void *, size_t, void *), void *, cl_int *);
cl_int clReleaseContext(cl_context);
cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties, cl_int *);
cl_int clReleaseCommandQueue(cl_command_queue);
cl_int clFinish(cl_command_queue);
cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t, void *, cl_int *);
cl_mem clCreateImage(cl_context, cl_mem_flags, const cl_image_format *, const cl_image_desc *, void *, cl_int *);
cl_int clReleaseMemObject(cl_mem);
cl_int clGetSupportedImageFormats(cl_context, cl_mem_flags, cl_mem_object_type, cl_uint, cl_image_format *, cl_uint *);
cl_program clCreateProgramWithSource(cl_context, cl_uint, const char **, const size_t *, cl_int *);
cl_program clCreateProgramWithBinary(cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **, cl_int *,
	cl_int *);
cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *);
cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t, void *, size_t *);
cl_int clGetProgramInfo(cl_program, cl_program_info, size_t, void *, size_t *);
cl_int clReleaseProgram(cl_program);
cl_kernel clCreateKernel(cl_program, const char *, cl_int *);
cl_int clSetKernelArg(cl_kernel, cl_uint, size_t, const void *);
cl_int clGetKernelInfo(cl_kernel, cl_kernel_info, size_t, void *, size_t *);
cl_int clGetKernelArgInfo(cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void *, size_t *);
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *, size_t *);
cl_int clReleaseKernel(cl_kernel);
cl_event clCreateUserEvent(cl_context, cl_int *);
cl_int clSetUserEventStatus(cl_event, cl_int);
cl_int clWaitForEvents(cl_uint, const cl_event *);
cl_int clGetEventProfilingInfo(cl_event, cl_profiling_info, size_t, void *, size_t *);
cl_int clReleaseEvent(cl_event);
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, WAIT);
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, WAIT);
cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, WAIT);
cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, WAIT);
void *clEnqueueMapBuffer(cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, WAIT, cl_int *);
void *clEnqueueMapImage(cl_command_queue, cl_mem, cl_bool, cl_map_flags, const size_t *, const size_t *,
	size_t *, size_t *, WAIT, cl_int *);
cl_int clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void *, WAIT);
cl_int clEnqueueReadImage(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, size_t, size_t, void *, WAIT);
cl_int clEnqueueWriteImage(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, size_t, size_t, const void *, WAIT);
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, WAIT);
cl_int clEnqueueTask(cl_command_queue, cl_kernel, WAIT);
cl_int clEnqueueMarkerWithWaitList(cl_command_queue, WAIT);
cl_int clEnqueueBarrierWithWaitList(cl_command_queue, WAIT);

#endif
