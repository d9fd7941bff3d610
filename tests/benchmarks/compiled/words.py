"""Words that jax, verax and torch have in common, for programs written once.

words = of_torch(torch)
words.softmax(words.matmul(q, words.swap(k)))
"""

import importlib
from types import SimpleNamespace
from typing import Any

DIMS = ("NCHW", "OIHW", "NCHW")


def of_jax(j: Any) -> Any:
    """The words of verax or jax, from what `cases.library` gives."""
    np, lax, nn = j.numpy, j.lax, j.nn

    def conv(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
        edge = w.shape[-1] // 2
        return lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            ((edge, edge), (edge, edge)),
            dimension_numbers=DIMS,
            feature_group_count=groups,
        )

    def max_pool(x: Any) -> Any:
        window = (1, 1, 2, 2)
        return lax.reduce_window(x, -float("inf"), lax.max, window, window, "VALID")

    def scan(step: Any, carry: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (step(c, x), None), carry, xs)[0]

    return SimpleNamespace(
        exp=np.exp,
        log=np.log,
        sqrt=np.sqrt,
        sin=np.sin,
        tanh=np.tanh,
        sigmoid=nn.sigmoid,
        relu=nn.relu,
        gelu=lambda x: nn.gelu(x, approximate=True),
        softmax=lambda x: nn.softmax(x, -1),
        logsumexp=lambda x: nn.logsumexp(x, -1),
        total=np.sum,
        sum=lambda x, axis: np.sum(x, axis),
        mean=lambda x, axis: np.mean(x, axis, keepdims=True),
        var=lambda x, axis: np.var(x, axis, keepdims=True),
        max=lambda x, axis: np.max(x, axis),
        matmul=np.matmul,
        einsum=np.einsum,
        swap=lambda x: np.swapaxes(x, -1, -2),
        permute=np.transpose,
        reshape=np.reshape,
        concat=lambda xs, axis: np.concatenate(xs, axis),
        stack=lambda xs, axis: np.stack(xs, axis),
        roll=lambda x, n, axis: np.roll(x, n, axis),
        where=np.where,
        conv=conv,
        max_pool=max_pool,
        sort=lambda x: np.sort(x, -1),
        argsort=lambda x: np.argsort(x, -1),
        argmax=lambda x: np.argmax(x, -1),
        cumsum=lambda x: np.cumsum(x, -1),
        top_k=lambda x: lax.top_k(x, 16)[0],
        take=lambda x, i: x[i],
        add_at=lambda x, i, v: x.at[i].add(v),
        segment_sum=lambda v, i, n: j.ops.segment_sum(v, i, n),
        abs_fft=lambda x: abs(np.fft.fft(x)),
        cholesky=np.linalg.cholesky,
        solve=np.linalg.solve,
        solve_lower=lambda a, b: j.linalg.solve_triangular(a, b, lower=True),
        inv=np.linalg.inv,
        singular=lambda x: np.linalg.svd(x, compute_uv=False),
        eigenvalues=lambda x: np.linalg.eigh(x)[0],
        diagonal=np.diagonal,
        bfloat16=lambda x: x.astype(np.bfloat16),
        cross_entropy=lambda x, y: (
            -np.mean(np.take_along_axis(nn.log_softmax(x), y[:, None], 1))
        ),
        scan=scan,
        zeros=np.zeros,
        value_and_grad=lambda f, x: j.top.value_and_grad(f)(x),
        cos=np.cos,
        tan=np.tan,
        asin=np.arcsin,
        acos=np.arccos,
        atan=np.arctan,
        atan2=np.arctan2,
        sinh=np.sinh,
        cosh=np.cosh,
        asinh=np.arcsinh,
        acosh=np.arccosh,
        atanh=np.arctanh,
        log1p=np.log1p,
        expm1=np.expm1,
        exp2=np.exp2,
        log2=np.log2,
        rsqrt=lax.rsqrt,
        cbrt=np.cbrt,
        pow=np.power,
        erf=lax.erf,
        erfc=lax.erfc,
        erf_inv=lax.erf_inv,
        lgamma=lax.lgamma,
        digamma=lax.digamma,
        igamma=lax.igamma,
        i0e=lax.bessel_i0e,
        softplus=nn.softplus,
        logaddexp=np.logaddexp,
        mod=np.mod,
        fmod=np.fmod,
        floor_divide=np.floor_divide,
        round=np.round,
        floor=np.floor,
        sign=np.sign,
        divide=np.divide,
        hypot=np.hypot,
        nextafter=np.nextafter,
        is_nan=np.isnan,
        to_bfloat16=lambda x: x.astype(np.bfloat16),
        to_float16=lambda x: x.astype(np.float16),
        to_int32=lambda x: x.astype(np.int32),
        clip=lambda x: np.clip(x, -1, 1),
        square=np.square,
        cube=lambda x: x**3,
    )


def of_torch() -> Any:
    """The words of torch, eager."""
    torch = importlib.import_module("torch")
    nn = torch.nn.functional

    def scan(step: Any, carry: Any, xs: Any) -> Any:
        for x in xs:
            carry = step(carry, x)
        return carry

    def value_and_grad(f: Any, x: Any) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = f(x)
            (grad,) = torch.autograd.grad(y, x)
        return y.detach(), grad

    return SimpleNamespace(
        exp=torch.exp,
        log=torch.log,
        sqrt=torch.sqrt,
        sin=torch.sin,
        tanh=torch.tanh,
        sigmoid=torch.sigmoid,
        relu=nn.relu,
        gelu=lambda x: nn.gelu(x, approximate="tanh"),
        softmax=lambda x: nn.softmax(x, -1),
        logsumexp=lambda x: torch.logsumexp(x, -1),
        total=torch.sum,
        sum=torch.sum,
        mean=lambda x, axis: torch.mean(x, axis, keepdim=True),
        var=lambda x, axis: torch.var(x, axis, keepdim=True, unbiased=False),
        max=torch.amax,
        matmul=torch.matmul,
        einsum=torch.einsum,
        swap=lambda x: x.transpose(-1, -2),
        permute=lambda x, dims: x.permute(dims),
        reshape=torch.reshape,
        concat=torch.cat,
        stack=torch.stack,
        roll=torch.roll,
        where=torch.where,
        conv=lambda x, w, stride=1, groups=1: nn.conv2d(
            x, w, stride=stride, padding=w.shape[-1] // 2, groups=groups
        ),
        max_pool=lambda x: nn.max_pool2d(x, 2),
        sort=lambda x: torch.sort(x, -1)[0],
        argsort=lambda x: torch.argsort(x, -1),
        argmax=lambda x: torch.argmax(x, -1),
        cumsum=lambda x: torch.cumsum(x, -1),
        top_k=lambda x: torch.topk(x, 16)[0],
        take=lambda x, i: x[i],
        add_at=lambda x, i, v: x.index_add(0, i, v),
        segment_sum=lambda v, i, n: torch.zeros(n).index_add(0, i, v),
        abs_fft=lambda x: torch.fft.fft(x).abs(),
        cholesky=torch.linalg.cholesky,
        solve=torch.linalg.solve,
        solve_lower=lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        inv=torch.linalg.inv,
        singular=torch.linalg.svdvals,
        eigenvalues=torch.linalg.eigvalsh,
        diagonal=torch.diagonal,
        bfloat16=lambda x: x.to(torch.bfloat16),
        cross_entropy=nn.cross_entropy,
        scan=scan,
        zeros=torch.zeros,
        value_and_grad=value_and_grad,
        cos=torch.cos,
        tan=torch.tan,
        asin=torch.asin,
        acos=torch.acos,
        atan=torch.atan,
        atan2=torch.atan2,
        sinh=torch.sinh,
        cosh=torch.cosh,
        asinh=torch.asinh,
        acosh=torch.acosh,
        atanh=torch.atanh,
        log1p=torch.log1p,
        expm1=torch.expm1,
        exp2=torch.exp2,
        log2=torch.log2,
        rsqrt=torch.rsqrt,
        cbrt=lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
        pow=torch.pow,
        erf=torch.erf,
        erfc=torch.erfc,
        erf_inv=torch.erfinv,
        lgamma=torch.lgamma,
        digamma=torch.digamma,
        igamma=torch.special.gammainc,
        i0e=torch.special.i0e,
        softplus=nn.softplus,
        logaddexp=torch.logaddexp,
        mod=torch.remainder,
        fmod=torch.fmod,
        floor_divide=lambda x, y: torch.floor(x / y),
        round=torch.round,
        floor=torch.floor,
        sign=torch.sign,
        divide=torch.div,
        hypot=torch.hypot,
        nextafter=torch.nextafter,
        is_nan=torch.isnan,
        to_bfloat16=lambda x: x.to(torch.bfloat16),
        to_float16=lambda x: x.to(torch.float16),
        to_int32=lambda x: x.to(torch.int32),
        clip=lambda x: torch.clip(x, -1, 1),
        square=torch.square,
        cube=lambda x: x**3,
    )
