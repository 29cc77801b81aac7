/**
 * `npm pack` and `npm publish` run this first: it builds `dist/` and puts the manifest of the package in place of ours.
 *
 * npm packs the `package.json` that it finds, so ours is set aside until `postpack.ts` restores it. If npm ends before
 * that, run `npm run postpack`.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { build } from './build.ts'
import { type Manifest, packedManifest } from './packed-manifest.ts'
import { bringBack, MANIFEST, setAside } from './set-aside.ts'

if (!setAside()) {
  console.error('Another `npm pack` is at work here. If one was interrupted, run `npm run postpack` and try again.')
  process.exit(1)
}
try {
  rmSync('dist', { recursive: true, force: true })
  build()
  const manifest = packedManifest(JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest)
  const next = `${MANIFEST}.next`
  writeFileSync(next, `${JSON.stringify(manifest, null, 2)}\n`)
  renameSync(next, MANIFEST)
} catch (error) {
  bringBack()
  throw error
}
