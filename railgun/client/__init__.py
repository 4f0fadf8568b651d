"""The HTTP clients `railgun.Client` and `railgun.AsyncClient`. Programs and the commands of `railgun` use them."""
