"""The Gaussian calculus behind `stein` and `derivation`: rules, normal forms, checks."""
