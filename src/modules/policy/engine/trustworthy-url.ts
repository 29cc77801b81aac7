/** Whether a policy may make the server send requests to a URL (D53). */

export function isTrustworthyUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null) return false
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:') return true
  return url.protocol === 'http:' && loopback.has(url.hostname)
}

const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
