/** Reads the header `User-Agent` for display in lists of sessions; no decision depends on it. */

type Words = readonly (readonly [name: string, pattern: RegExp])[]

/** In order: most browsers also claim to be Chrome, and Chrome claims to be Safari. */
const browsers: Words = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d{1,5})/],
  ['Opera', /\b(?:OPR|Opera)\/(\d{1,5})/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d{1,5})/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d{1,5})/],
  ['Chrome', /\b(?:Chrome|CriOS|HeadlessChrome)\/(\d{1,5})/],
  ['Safari', /\bVersion\/(\d{1,5})[\d.]{0,16} (?:Mobile\/\w{1,16} )?Safari\//],
  ['curl', /^curl\/(\d{1,5})/],
]

/** In order: iPads and Android devices also claim to be Macs and Linux. */
const systems: Words = [
  ['iOS', /\b(?:iPhone|iPad)[^)]{0,64}? OS (\d{1,5}(?:_\d{1,5}){0,2})/],
  ['Android', /\bAndroid (\d{1,5}(?:\.\d{1,5}){0,2})/],
  ['Windows', /\bWindows NT (\d{1,5}\.\d{1,5})/],
  ['MacOS', /\bMac OS X (\d{1,5}(?:[._]\d{1,5}){0,2})/],
  ['ChromeOS', /\bCrOS \w{1,16} (\d{1,5})/],
  ['Linux', /\bLinux\b()/],
]

const devices: Words = [
  ['Bot', /bot\b|crawler|spider/i],
  ['Tablet', /\biPad\b|\bTablet\b|\bAndroid\b(?!.*\bMobile\b)/],
  ['Mobile', /\bMobile\b|\biPhone\b/],
  ['Desktop', /\bWindows NT\b|\bMac OS X\b|\bCrOS\b|\bX11\b/],
]

export function readUserAgent(raw: string) {
  const browser = first(browsers, raw)
  const system = first(systems, raw)
  return {
    raw,
    browser_name: browser.name,
    browser_version: browser.version,
    device_type: first(devices, raw).name,
    os_name: system.name,
    os_version: system.version.replaceAll('_', '.'),
  }
}

function first(words: Words, raw: string): { name: string; version: string } {
  for (const [name, pattern] of words) {
    const match = pattern.exec(raw)
    if (match) return { name, version: match[1] ?? '' }
  }
  return { name: '', version: '' }
}
