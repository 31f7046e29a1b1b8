#!/usr/bin/env python3
"""test_lab_audit.py FOLIOT-LAB [CLASS]: audits with real packets: tests beside a job, a hole for long packets, a host that dies
in a ring.

`Ring` judges how much the lab's hosts can carry, so it runs alone: beside other tests an audit leaves out hosts that it can't
measure."""
import contextlib
import glob
import json
import os
import signal
import subprocess
import tempfile
import time

import ours
from ours import NAME, PROGRAM, folder, free_port, lab, spaces, until


FAILS = ('be.conn.mtu',)  # by real packets: test/audit/test_shown.py


class Audited(ours.Controlled):
    """Four hosts with two NICs each, and a controller that audits them."""

    @contextlib.contextmanager
    def audited(self):
        with open('/tmp/%s.yaml' % NAME, 'w') as f:
            f.write('fabric: {hosts: 4, nics_per_host: 2, leaves: 2, spines: 2, wiring: rail}\n')
        try:
            lab('up', f.name, '--controller=' + free_port())
            self.assertTrue(until(lambda: self.healthy() == 4, 180), self.ask('api/v1/hosts'))
            yield
        finally:
            os.unlink(f.name)
            lab('down')
        self.assertEqual(spaces(), [])


class Ring(Audited):
    def test_death_in_a_ring(self):
        with self.audited():
            self.death_in_a_ring()

    def death_in_a_ring(self):
        """A host dies while the audit's collectives run: they run again without it, and that host's results are unknown."""
        with open(folder() + '/host3/agent.pid') as f:
            agent = int(f.read())

        def runs_ring():
            # First come 24 tests of pairs (four hosts, two NICs), at most 8 more of them, and 4 to 8 tests of memory. Then come
            # 16 of all at once, and 32 of the eight rings.
            now = self.ask('api/v1/audit/runs/' + run)
            with open('/proc/%d/task/%d/children' % (agent, agent)) as children:
                return now['state'] in ('done', 'stopped') or bool(now['state'] == 'testing' and now['tests_planned'] > 60 and children.read().strip())

        for _ in range(3):  # on a busy machine earlier stages may leave so many hosts out that no ring begins
            run = self.ask('api/v1/audit/runs', {'nccl': True})['run']
            self.assertTrue(until(runs_ring, 240), self.ask('api/v1/audit/runs/' + run))
            if self.ask('api/v1/audit/runs/' + run)['state'] == 'testing':
                break
        os.kill(agent, signal.SIGKILL)
        self.assertTrue(until(lambda: self.ask('api/v1/audit/runs/' + run)['state'] in ('done', 'stopped'), 400))
        done = self.ask('api/v1/audit/runs/' + run)
        hosts = [row['hosts'] for row in done['tests']['rows']]
        self.assertEqual((done['state'], len(hosts), len(set(hosts))), ('done', 8, 1), done)
        self.assertIn(hosts[0], (2, 3), done)  # without host3, and without one that an earlier stage left out
        unknown = {(r['host'], r['check']): r['reason'] for r in self.ask('api/v1/audit/runs/%s/results?limit=1000&status=unknown' % run)['items']}
        for row, check in zip(done['tests']['rows'], ['nccl.busbw.q' + q for q in ('1', '2', '4', '8', '1h', '2h', '4h', '8h')]):
            self.assertIn(('host3', check), unknown)
            # Four hosts are too few to compare with each other, in any case. For a completed ring no result is unknown for
            # another reason.
            self.assertTrue(hosts[0] < 3 or row['outcome'] != 'done' or {unknown.get((host, check), 'small_cohort') for host in ('host0', 'host1', 'host2')} == {'small_cohort'}, unknown)
        self.assertTrue(any(row['outcome'] == 'done' for row in done['tests']['rows']), done['tests'])
        for check in ('be.bw.permutation', 'nccl.alltoall'):  # they ran before it died
            self.assertIn('small_cohort', {unknown.get((host, check)) for host in ('host0', 'host1', 'host2', 'host3')}, unknown)


class BesideOthers(Audited):
    def test_audit(self):
        with self.audited():
            self.audit_beside_a_job()
            self.hole_for_long_packets()

    def audit_beside_a_job(self):
        """An audit's tests run between the hosts without a job, and not on the host with one."""
        foliot = os.path.join(os.path.dirname(os.path.dirname(PROGRAM)), 'src', 'app', 'foliot')
        job = subprocess.Popen([foliot, 'perf', '--lab', NAME, '--hosts', '3,3', '--ranks', '2', '-b', '64K', '--duration', '600', '-c', '0', '--wait', '1000'],
                               env={**os.environ, 'FOLIOT_RUNTIME_DIR': folder() + '/host3'}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(until(lambda: glob.glob(folder() + '/host3/jobs/job-*')), os.listdir(folder() + '/host3'))
            run = self.ask('api/v1/audit/runs', {'bandwidth': True})['run']
            self.assertTrue(until(lambda: self.ask('api/v1/audit/runs/' + run)['state'] in ('done', 'stopped'), 240))
            done = self.ask('api/v1/audit/runs/' + run)
            self.assertEqual((done['state'], done['tests_why'], done['bandwidth'], done['nccl']), ('done', None, True, False), done['why'])
            self.assertEqual(done['tests']['rows'], [])
            unknown = {r['host']: r['reason'] for r in self.ask('api/v1/audit/runs/%s/results?limit=1000&status=unknown' % run)['items'] if r['check'] == 'be.bw.pair'}
            self.assertEqual(unknown.get('host3'), 'busy', unknown)
            self.assertEqual([h for h, reason in unknown.items() if reason == 'busy'], ['host3'])
            # Each host's facts include those of its own agent.
            skipped = {c['check']: c['counts']['skip'] for c in done['checks'] if c['check'] in ('node.agent', 'be.conn.paths')}
            self.assertEqual(skipped, {'node.agent': 0, 'be.conn.paths': 0})
        finally:
            job.terminate()
            job.wait()

    def hole_for_long_packets(self):
        """A leaf's port has a too small MTU: probes arrive, packets of full size don't. One check reports it, and no longer does
        after the repair."""
        programs = os.path.join(os.path.dirname(os.path.dirname(PROGRAM)), 'src', 'app')

        def results(check=FAILS[0]):
            time.sleep(0.5)  # this is repeated often, and each time costs two programs
            with tempfile.NamedTemporaryFile('w', suffix='.json') as sheet:
                sheet.write(subprocess.run([programs + '/foliot-inspect', '--agent', folder() + '/host1/agent.sock'], capture_output=True, text=True, check=True).stdout)
                sheet.flush()
                done = subprocess.run([programs + '/foliot', 'audit', 'show', sheet.name, '--json', '--all'], capture_output=True, text=True)
            return [r for r in json.loads(done.stdout)['results'] if r['check'] == check]

        def statuses(check=FAILS[0]):
            found = results(check)
            return {status: sum(r['status'] == status and (r['subject'] == '' or r['subject'].startswith('nic0 ')) for r in found)
                    for status in ('fail', 'warn', 'pass', 'unknown', 'skip')}

        self.assertTrue(until(lambda: statuses()['pass'] >= 2 and statuses()['unknown'] + statuses()['fail'] == 0, 180), results())
        lab('fault', 'blackhole', 'host1/nic0', '--direction', 'up', '--above_bytes', '1400')
        self.assertTrue(until(lambda: statuses()['fail'] >= 2, 180), results())
        self.assertTrue(until(lambda: statuses('be.conn.matrix')['fail'] + statuses('be.conn.paths')['fail'] == 0), statuses('be.conn.paths'))
        lab('fault', 'undo', 'all')
        self.assertTrue(until(lambda: statuses()['fail'] + statuses()['warn'] == 0 and statuses()['pass'] >= 2, 180), results())
        # If an interface has a larger MTU, packets of that size are tried, too.
        for space in map(os.path.basename, spaces()):
            links = subprocess.run(['ip', '-json', '-netns', space, 'link', 'show', 'type', 'veth'], capture_output=True, text=True, check=True).stdout
            for link in json.loads(links or '[]'):
                subprocess.run(['ip', '-netns', space, 'link', 'set', 'dev', link['ifname'], 'mtu', '4200'], check=True)
        # If a neighbour never answered a packet of that size, the result is unknown. The agent may have restarted with the
        # changed interfaces.
        time.sleep(5)
        self.assertTrue(until(lambda: statuses()['pass'] >= 2 and statuses()['unknown'] + statuses()['fail'] == 0, 180), results())
        lab('fault', 'blackhole', 'host1/nic0', '--direction', 'up', '--above_bytes', '1600')
        self.assertTrue(until(lambda: statuses()['fail'] >= 2, 180), results())
        lab('fault', 'undo', 'all')
        self.assertTrue(until(lambda: statuses()['fail'] + statuses()['warn'] == 0 and statuses()['pass'] >= 2, 180), results())


if __name__ == '__main__':
    ours.main()
