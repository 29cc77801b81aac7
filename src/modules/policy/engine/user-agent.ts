/** Parses the usual forms of the `User-Agent` header: a hint for rules, never a proof. */

/** The most characters that are read. */
const MAX_LENGTH = 512

/** The first match counts, since browsers name other browsers too. */
const browsers: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/([\d.]+)/],
  ['Opera', /\bOPR\/([\d.]+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/([\d.]+)/],
  ['Chrome', /\b(?:Chrome|CriOS)\/([\d.]+)/],
  ['Safari', /\bVersion\/([\d.]+).{0,100} Safari\//],
]

const systems: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Windows', /\bWindows NT ([\d.]+)/],
  ['iOS', /\b(?:iPhone )?OS (\d[\d_]*) like Mac OS X/],
  ['macOS', /\bMac OS X (\d[\d_.]*)/],
  ['Android', /\bAndroid ([\d.]+)/],
  ['CrOS', /\bCrOS \S{1,20} ([\d.]+)/],
  ['Linux', /\bLinux\b()/],
]

export function readUserAgent(given: string) {
  const text = given.slice(0, MAX_LENGTH)
  const [name, version] = first(browsers, text) ?? /^([^\s/();]{1,64})(?:\/([\w.]{1,32}))?/.exec(text)?.slice(1) ?? []
  const [os = '', osVersion = ''] = first(systems, text) ?? []
  const isBot = /bot\b|crawl|spider|slurp/i.test(text)
  const isTablet = /\biPad\b|\bTablet\b/.test(text) || (os === 'Android' && !text.includes('Mobile'))
  const isMobile = !isTablet && /\bMobile\b|\biPhone\b/.test(text)
  const url = /\+(https?:\/\/[^\s;)]{1,200})/.exec(text)?.[1] ?? ''
  return {
    name: name ?? '',
    version: version ?? '',
    os,
    osVersion: osVersion.replaceAll('_', '.'),
    device: /\b(?:iPhone|iPad)\b/.exec(text)?.[0] ?? '',
    url,
    isBot,
    isMobile,
    isTablet,
    isDesktop: !isBot && !isMobile && !isTablet && os !== '',
  }
}

function first(table: readonly (readonly [string, RegExp])[], text: string): string[] | undefined {
  for (const [name, pattern] of table) {
    const found = pattern.exec(text)
    if (found) return [name, found[1] ?? '']
  }
  return undefined
}
