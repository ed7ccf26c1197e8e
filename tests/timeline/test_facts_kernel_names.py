"""Names of kernels, as real traces spell them, tell what a kernel does and what it multiplies with."""

import pytest

from torchdiag.timeline.facts.kernel_names import Arithmetic, Sort, arithmetic_of, sort_of

A, S = Arithmetic, Sort
CK = "_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34Gridwise"


@pytest.mark.parametrize(
    ("name", "sort", "arithmetic"),
    [
        ("ampere_sgemm_128x64_tn", S.GEMM, A.FP32),
        ("volta_sgemm_32x128_nt", S.GEMM, A.FP32),
        ("maxwell_sgemm_128x64_nn", S.GEMM, A.FP32),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>", S.GEMM, A.FP32),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize2x2x1_ffma_aligna4", S.GEMM, A.FP32),
        ("volta_cgemm_32x32_tn", S.GEMM, A.FP32),
        ("ampere_fp16_sgemm_fp16_64x64_tn", S.GEMM, A.FP32),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>", S.GEMM, A.FP32),
        ("void magma_sgemmEx_kernel<float, float, float, false, false, 6, 3, 5, 3, 3>(int, int)", S.GEMM, A.FP32),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_execute_segment_k_off", S.GEMM, A.TF32),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>", S.GEMM, A.TF32),
        ("void cutlass::Kernel<cutlass_75_tensorop_f16_s1688gemm_f16_64x64_nn_align1>", S.GEMM, A.HALF),
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_64x64_nn_align1>", S.GEMM, A.HALF),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_64x64_32x6_nn_align8>", S.GEMM, A.HALF),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_nn_align8>", S.GEMM, A.HALF),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", S.GEMM, A.HALF),
        ("turing_fp16_s1688gemm_fp16_128x64_ldg8_f2f_tn", S.GEMM, A.HALF),
        ("volta_h884gemm_128x64_ldg8_tn", S.GEMM, A.HALF),
        ("nvjet_sm103_tst_128x64_64x9_4x1_v_bz_TNN", S.GEMM, A.HALF),
        ("nvjet_tst_192x192_64x4_2x1_2cta_v_bz_bias_TNT", S.GEMM, A.HALF),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_execute_segment_k_off", S.GEMM, A.HALF),
        ("volta_dgemm_64x64_nn", S.GEMM, A.FP64),
        ("sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage4", S.GEMM, A.FP64),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB1_APM1", S.GEMM, A.HALF),
        ("Cijk_Ailk_Bljk_HHS_BH_MT64x128x64_MI16x16x16x1_SN", S.GEMM, A.HALF),
        ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256", S.GEMM, A.HALF),
        ("Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT96x96x16_MI32x32x1_SN", S.GEMM, A.FP32),
        ("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1", S.GEMM, A.FP32),
        ("Cijk_Ailk_Bljk_DB_MT64x64x16_MI16x16x4x1_SN_1LDSB0", S.GEMM, A.FP64),
        ("Cijk_B_PostGSU2", S.GEMM, A.UNTOLD),
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x128x256u2_s3_et128x128_m128x128x32_cga1x1x1", S.GEMM, A.HALF),
        ("triton_tem_fused_addmm_relu_3", S.GEMM, A.UNTOLD),
        ("cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1", S.CONVOLUTION, A.FP32),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", S.CONVOLUTION, A.FP32),
        ("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false>(int)", S.CONVOLUTION, A.FP32),
        ("_5x_cudnn_ampere_fp16_scudnn_fp16_128x32_relu_small_nn_v1", S.CONVOLUTION, A.FP32),
        ("void cudnn::detail::dgrad_engine<float, 128, 6, 7, 3, 3, 5, false>(int, int)", S.CONVOLUTION, A.FP32),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc", S.CONVOLUTION, A.TF32),
        ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64>", S.CONVOLUTION, A.TF32),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16>", S.CONVOLUTION, A.HALF),
        ("void cutlass_cudnn::Kernel<cutlass_tensorop_s16816fprop_optimized_f16_64x64>", S.CONVOLUTION, A.HALF),
        ("sm80_xmma_fprop_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc", S.CONVOLUTION, A.HALF),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x64x16_wt16x16x4_ws1x1", S.CONVOLUTION, A.HALF),
        (f"{CK}MultipleD_xdl_cshuffleItttftNS_5TupleIJEEEtNS0_12ESA_SB_SB_Li2E", S.CONVOLUTION, A.HALF),
        ("Im2d2Col_v2", S.CONVOLUTION, A.UNTOLD),
        ("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1", S.CONVOLUTION, A.UNTOLD),
    ],
)  # fmt: skip
def test_products_and_convolutions(name: str, sort: Sort, arithmetic: Arithmetic):
    assert (Sort(sort_of(name)), Arithmetic(arithmetic_of(name))) == (sort, arithmetic)


@pytest.mark.parametrize(
    ("name", "sort"),
    [
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)", S.ATTENTION),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, cutlass::bfloat16_t> >", S.ATTENTION),
        ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<cutlass::gemm::X> > >", S.ATTENTION),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", S.ATTENTION),
        ("aiter::fmha_fwd_hd128_bf16_rtz", S.ATTENTION),
        ("kernel_unified_attention_2d", S.ATTENTION),
        ("attn_fwd.kd", S.ATTENTION),
        ("triton_tem_fused_flex_attention_2", S.ATTENTION),
        ("triton_poi_fused__to_copy_add_cat_fmha_v3_fwd_mul_neg_stack_13", S.ELEMENTWISE),
        ("triton_poi_fused_addmm_gelu_view_17", S.ELEMENTWISE),
        ("triton_red_fused_add_addmm_mul_native_layer_norm_split_18", S.REDUCTION),
        ("triton_per_fused_native_dropout_backward_sum_view_3", S.REDUCTION),
        ("void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu>", S.ELEMENTWISE),
        ("void at::native::unrolled_elementwise_kernel<at::native::MulFunctor<float> >", S.ELEMENTWISE),
        ("void split_embedding_codegen_forward_unweighted_kernel<float>(fbgemm_gpu::FixedDivisor)", S.OTHER),
        ("void moe::dev::finalize::finalizeKernelVecLoad<KernelParams<cutlass::bfloat16_t> >", S.OTHER),
        ("void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>", S.COPY),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>", S.COPY),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >", S.FILL),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >", S.REDUCTION),
        ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float> > >", S.REDUCTION),
        ("void splitKreduce_kernel<32, 16, int, float, float, float, float, true>", S.REDUCTION),
        ("void cunn_SoftMaxForward<4, float, float, float>", S.SOFTMAX),
        ("void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float, 10, false>", S.SOFTMAX),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", S.NORMALISATION),
        ("void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel_32x32<float, float>", S.NORMALISATION),
        ("kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__", S.NORMALISATION),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass", S.NORMALISATION),
        ("MIOpenBatchNormBwdSpatial", S.NORMALISATION),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>", S.NORMALISATION),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", S.LAYOUT),
        ("batched_transpose_32x32_pack_4x4_ediv_4x4_half", S.LAYOUT),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >", S.OPTIMIZER),
        ("void at::native::(anonymous namespace)::indexing_backward_kernel<float, 4>(long*)", S.OTHER),
        ("", S.OTHER),
    ],
)
def test_other_kernels(name: str, sort: Sort):
    assert Sort(sort_of(name)) == sort
