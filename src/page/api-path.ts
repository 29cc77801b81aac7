/** Turns a `uri` of the API into its path, which is also the place on the page. */

/** `base` is the address of the page, which a proxy may serve under a path. Undefined for addresses outside the API. */
export function apiPath(uri: string, base: string): string | undefined {
  const [address, root] = [URL.parse(uri), URL.parse('.', base)]
  if (!address || !root) return undefined
  const { pathname } = address
  return pathname.startsWith(root.pathname) ? `/${pathname.slice(root.pathname.length)}` : undefined
}
