/** Runs a suite with a real browser; without one, prints a single line, and fails in CI. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findChromium, type TestChromium } from '../../support/browser.ts'

export async function withBrowser(what: string, suite: (chromium: TestChromium) => void): Promise<void> {
  const found = await findChromium()
  if (found) {
    suite(found)
    return
  }
  test(what, (t) => {
    t.diagnostic(`no Chromium runs on this machine, so this is left out: ${what}`)
    assert.equal(process.env.CI ?? '', '', 'a run of CI needs a browser')
  })
}
