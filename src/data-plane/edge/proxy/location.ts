/** D37: a redirect to the rewritten host becomes one to the host that the visitor asked for. */

const absolute = /^(?:(https?):)?\/\/([^/?#]*)(.*)$/is

export interface PublicOrigin {
  readonly scheme: 'http' | 'https'
  /** `Host` as the visitor sent it. */
  readonly authority: string
}

/** `location` as the visitor should see it; unchanged when it points elsewhere. */
export function publicLocation(location: string, replacedHost: string, { scheme, authority }: PublicOrigin): string {
  const [whole, sentScheme, host = '', rest = ''] = absolute.exec(location) ?? []
  if (whole === undefined || withoutUsualPort(host) !== withoutUsualPort(replacedHost)) return location
  return sentScheme === undefined ? `//${authority}${rest}` : `${scheme}://${authority}${rest}`
}

function withoutUsualPort(host: string): string {
  return host.toLowerCase().replace(/:(?:80|443)?$/, '')
}
