"""The bulk of a gradient step as it was first derived, at 30 digits: resolvents of S at omega, derivatives by mpmath.

x^T (S + omega)^{-1} y for theta and b_j = (1/n_B) sum R^j x; K with a^T C^{-1} a from omega -> 1/tau; traces and sources as
numerical derivatives of V_1, V_2, K along L and Vhat_1. Nothing is shared with the package, not even the algebra.
"""

import mpmath as mp

mp.mp.dps = 30


def gaussian(step=0.1, reach=11):
    """Nodes and weights of the trapezoid rule for N(0, 1)."""
    n = int(reach/step)
    xs = [mp.mpf(k)*step for k in range(-n, n + 1)]
    return [(mp.npdf(x)*step, x) for x in xs]


def law(g, Delta):
    """[(weight, R, E[z|.], E[z^2|.])]: g smooth without noise, or sign with noise."""
    if g == "sign":
        return [(w/2, s + mp.sqrt(Delta)*x, s*mp.sqrt(2/mp.pi), mp.mpf(1)) for w, x in gaussian() for s in (-1, 1)]
    return [(w, g(x), x, x*x) for w, x in gaussian()]


class Bulk:
    """One gradient step: alpha0, t = eta/beta, and the moments of sigma."""

    def __init__(self, g, Delta, *, alpha0, t, beta, sigma, slope):
        self.law, self.alpha0, self.t, self.beta = law(g, Delta), mp.mpf(alpha0), mp.mpf(t), mp.mpf(beta)
        z = gaussian()
        s1 = sum(w*slope(x) for w, x in z)
        self.s3 = sum(w*sigma(x)*(x**3 - 3*x) for w, x in z)
        self.xi = {k: sum(w*(slope(x) - s1)**k for w, x in z) for k in (2, 3, 4)}
        self.xi22 = sum(w*(slope(x) - s1)**2*x**2 for w, x in z)
        self.tau = self.t**2/self.alpha0*self.xi[2]
        self.R2, self.R4, self.g1 = self.mean(2), self.mean(4), self.mean(1, 1)
        self.Nv = mp.sqrt(self.g1**2 + self.R2/self.alpha0)
        self.gamma = self.g1/self.Nv

    def mean(self, j, k=0, G=0):
        """E[R^j z^k / D]."""
        return sum(w*R**j*(1, z, z2)[k]/(1 + R**2*G/self.alpha0) for w, R, z, z2 in self.law)

    def G(self, omega):
        """The fixed point G = 1/(omega + E[R^2/D])."""
        return mp.findroot(lambda G: G*(omega + self.mean(2, 0, G)) - 1, 1/(omega + self.R2))

    def forms(self, omega):
        """x^T (S + omega)^{-1} y for x, y in (theta, b_1, b_3)."""
        G = self.G(omega)
        theta = 1/(omega + self.mean(2, 2, G))
        rho = {j: self.mean(j, 1, G) for j in (1, 3)}

        def b(i, j):
            return G/self.alpha0*self.mean(i + j, 0, G) + rho[i]*rho[j]*theta

        return mp.matrix([[theta, rho[1]*theta, rho[3]*theta], [rho[1]*theta, b(1, 1), b(1, 3)],
                          [rho[3]*theta, b(1, 3), b(3, 3)]]), G

    def state(self, L, Vhat1, near):
        """(V_2, V_1, K) at given L and Vhat_1."""
        beta, tau = self.beta, self.tau

        def k_1(V2):
            delta = beta*Vhat1*V2
            return (1 - self.G((1 + delta)/(delta*tau))/(delta*tau))/delta

        V2 = mp.findroot(lambda V: V*(L + Vhat1*k_1(V)) - 1, near)
        return V2, k_1(V2)*V2, self.K(V2, Vhat1)

    def s_c2(self):
        """d Var |w|^2."""
        t, a = self.t, self.alpha0
        return (4*t**2*(self.R2/a*self.xi22 + self.s3**2*self.g1**2) + 2*t**4/a**2*self.xi[2]**2*(self.R2**2 + self.R4/a)
                + t**4/a**3*(self.xi[4] - 3*self.xi[2]**2)*self.R4)

    def K(self, V2, Vhat1):
        """The 3 x 3 matrix between v, theta_perp and the norms, the spike's direction taken out."""
        delta = self.beta*Vhat1*V2
        v = mp.matrix([0, 1/self.Nv, 0])
        perp = (mp.matrix([1, 0, 0]) - self.gamma*v)/mp.sqrt(1 - self.gamma**2)
        a = 2*self.t*self.s3*self.Nv*v + mp.matrix([0, 0, self.t**3/self.alpha0**2*self.xi[3]])

        def between(forms, scale):
            return lambda x, y: (x.T*forms*y)[0]*scale

        r = between(self.forms((1 + delta)/(delta*self.tau))[0], 1/(delta*self.tau))
        inverse = between(self.forms(1/self.tau)[0], 1/self.tau)(a, a)
        s_e2 = self.s_c2() - inverse
        assert s_e2 > 0
        full = self.beta*V2*mp.matrix([
            [(1 - r(v, v))/delta, -r(v, perp)/delta, r(v, a)],
            [-r(v, perp)/delta, (1 - r(perp, perp))/delta, r(perp, a)],
            [r(v, a), r(perp, a), inverse - delta*r(a, a) + s_e2]])
        column = full[:, 0]
        return full + Vhat1*column*column.T/(1 - Vhat1*full[0, 0])

    def derivatives(self, L, Vhat1, near):
        """{"T0", "T1", "T1_too", "T2", "K", "K_L", "K_1"}: minus the total derivatives."""
        step = mp.mpf(10)**-8

        def minus(f, at):
            up, down = f(at + step), f(at - step)
            return [(d - u)/(2*step) for u, d in zip(up, down, strict=True)]

        by_L = minus(lambda x: self.state(x, Vhat1, near), mp.mpf(L))
        by_1 = minus(lambda x: self.state(L, x, near), mp.mpf(Vhat1))
        V2, V1, K = self.state(L, Vhat1, near)
        return {"V2": V2, "V1": V1, "T0": by_L[0], "T1": by_L[1], "T1_too": by_1[0], "T2": by_1[1], "K": K, "K_L": by_L[2],
                "K_1": by_1[2]}
