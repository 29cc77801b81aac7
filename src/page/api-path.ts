/** From the addresses that the API gives to its paths, which are places on the page. */

/** The path in the API of a `uri` of the API; `base` is the address of the page, which a proxy may serve under a path. */
export function apiPath(uri: string, base: string): string | undefined {
  const [address, root] = [URL.parse(uri), URL.parse('.', base)]
  if (!address || !root) return undefined
  const { pathname } = address
  return pathname.startsWith(root.pathname) ? `/${pathname.slice(root.pathname.length)}` : undefined
}
