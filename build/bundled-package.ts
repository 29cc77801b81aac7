/**
 * Makes a folder that looks like the installed package, with its code bundled: it starts in half the CPU time of the sources,
 * which are some thousand files. For test runs, which start `postern` hundreds of times.
 *
 * `node build/bundled-package.ts <folder>`
 */
import { copyFileSync, globSync, mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'vite'

/** What the code of a package reads from it. */
const LINKED = ['built', 'deploy', 'docs', 'node_modules']

/** Packages that read files of their own, or parts of which our code loads by their path. */
const LEFT_OUT = ['@bufbuild/cel', '@scalar/fastify-api-reference', 'pino', 'ssh2', 'yaml']

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: node build/bundled-package.ts <folder>')
  process.exit(2)
}
await build({
  configFile: false,
  envDir: false,
  publicDir: false,
  logLevel: 'error',
  ssr: { noExternal: true, external: LEFT_OUT },
  build: {
    ssr: true,
    outDir: join(folder, 'dist'),
    emptyOutDir: true,
    target: 'node24',
    minify: false,
    sourcemap: true,
    reportCompressedSize: false,
    rollupOptions: {
      // Threads are started by the name of their file, which is looked for beside the code that starts them.
      input: ['src/main.ts', ...globSync('src/**/*-thread.ts')],
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
})
mkdirSync(join(folder, 'bin'))
for (const file of ['bin/postern.js', 'package.json']) copyFileSync(file, join(folder, file))
for (const name of LINKED) symlinkSync(resolve(name), join(folder, name))
