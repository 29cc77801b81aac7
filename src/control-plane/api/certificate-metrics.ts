/** Metrics about certificates that were not uploaded: those that the server gets by itself, and those in files. */
import { Gauge, type Registry } from '@prometheus-io/client'
import { registerReadCounter } from './read-counter.ts'

/** The counts; those of names are for all nodes together, those of results for this node. */
interface CertificateReads {
  readonly ordering: number
  readonly first: number
  readonly renewal: number
  readonly failing: number
  readonly ordersWithinHour: number
  readonly issued: number
  readonly failed: number
}

/** Adds the metrics of certificates in files. */
export function registerCertificateFiles(
  registry: Registry,
  read: () => { readonly served: number; readonly bad: number },
): void {
  new Gauge({
    name: 'postern_certificate_files',
    help: 'Certificates in `--certificate-dir`: `served`, and `bad` ones, which the log names.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { served, bad } = read()
      for (const [state, count] of Object.entries({ served, bad })) this.set({ state }, count)
    },
  })
}

/** Adds the metrics of certificates that the server gets by itself. */
export function registerCertificates(registry: Registry, read: () => CertificateReads | undefined): void {
  new Gauge({
    name: 'postern_certificate_names',
    help: 'Names whose certificates the server gets by itself, by what is next: an order `ordering`, the `first` certificate, or a `renewal`.',
    labelNames: ['next'],
    registers: [registry],
    collect() {
      const { ordering = 0, first = 0, renewal = 0 } = read() ?? {}
      for (const [next, count] of Object.entries({ ordering, first, renewal })) this.set({ next }, count)
    },
  })
  new Gauge({
    name: 'postern_certificate_names_failing',
    help: 'Names whose last try to get a certificate failed; each is retried. The log and the API say why.',
    registers: [registry],
    collect() {
      this.set(read()?.failing ?? 0)
    },
  })
  new Gauge({
    name: 'postern_acme_orders_last_hour',
    help: 'Orders that all nodes started within the last hour; `--acme-orders-per-hour` limits them.',
    registers: [registry],
    collect() {
      this.set(read()?.ordersWithinHour ?? 0)
    },
  })
  registerReadCounter(registry, {
    name: 'postern_acme_issued_total',
    help: 'Certificates that this node got from the certificate authority.',
    read: () => read()?.issued ?? 0,
  })
  registerReadCounter(registry, {
    name: 'postern_acme_failures_total',
    help: 'Failed tries of this node to get a certificate; each is retried.',
    read: () => read()?.failed ?? 0,
  })
}
