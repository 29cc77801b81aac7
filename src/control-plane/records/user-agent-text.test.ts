import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readUserAgent } from './user-agent-text.ts'

const mac = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'
const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)'

const cases: readonly (readonly [raw: string, browser: string, device: string, system: string])[] = [
  [`${mac} ${webKit} Chrome/126.0.0.0 Safari/537.36`, 'Chrome 126', 'Desktop', 'MacOS 10.15.7'],
  [
    `${mac} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15`,
    'Safari 17',
    'Desktop',
    'MacOS 10.15.7',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox 128', 'Desktop', 'Linux '],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0`,
    'Edge 126',
    'Desktop',
    'Windows 10.0',
  ],
  [`Mozilla/5.0 (Linux; Android 14) ${webKit} Chrome/126.0 Mobile Safari/537.36`, 'Chrome 126', 'Mobile', 'Android 14'],
  [`Mozilla/5.0 (Linux; Android 14) ${webKit} Chrome/126.0 Safari/537.36`, 'Chrome 126', 'Tablet', 'Android 14'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari 17',
    'Mobile',
    'iOS 17.5',
  ],
  ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', ' ', 'Bot', ' '],
  ['curl/8.5.0', 'curl 8', '', ' '],
  ['', ' ', '', ' '],
  ['a'.repeat(512), ' ', '', ' '],
]

for (const [raw, browser, device, system] of cases) {
  test(`reads ${raw.slice(0, 80) || 'nothing'}`, () => {
    const read = readUserAgent(raw)
    assert.equal(read.raw, raw)
    assert.equal(`${read.browser_name} ${read.browser_version}`, browser)
    assert.equal(read.device_type, device)
    assert.equal(`${read.os_name} ${read.os_version}`, system)
  })
}
