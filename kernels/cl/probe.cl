// What float32 arithmetic comes to on a device, as its driver compiles it: a product and a sum,
// alone and as a polynomial has them; fma; a product. The backend compares it with the numeric
// contract when it opens the device.
#pragma OPENCL FP_CONTRACT OFF

__kernel void probe(__global const float *restrict in, __global float *restrict out)
{
	const int i = get_global_id(0);
	const float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
	float p = c;
	for (int k = 0; k < 7; k++)
		p = p * a + b;
	out[4 * i] = a * b + c;
	out[4 * i + 1] = p;
	out[4 * i + 2] = fma(a, b, c);
	out[4 * i + 3] = a * b;
}
