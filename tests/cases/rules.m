function mpc = rules
%RULES  Six buses, one for each rule that a reader can get wrong.
%   Not taken from anywhere; the numbers are invented.

%{
A block comment: mpc.bus = [ this is no matrix
%}
mpc.version = '2';
mpc.baseMVA = 200/2;    % an expression

%	bus_i	type	Pd	Qd	Gs	Bs	area	Vm	Va	baseKV	zone	Vmax	Vmin
mpc.bus = [
	10	3	0	0	0	0	1	1.02	5	0	1	1.1	0.9;    % reference
	20	2	40000	10e3	0	0	1	1	0	110	1	1.1	0.9;    % two generators, set-points 1.01 and 1.03
	30	1	30000	-5000	2	19	1	0.98	-3	sqrt(3)*100	1	1.1	0.9;    % generator at a PQ bus
	40	2	20000	5000	0	0	1	1	0	110	1	1.1	0.9;    % PV, its only generator is out: a PQ bus
	50	4	99000	0	0	0	1	1	0	110	1	1.1	0.9;    % isolated
	60	3	10000	0	0	0	1	1.2	0	110	1	1.1	0.9;    % reference without a generator: a PQ bus
];

mpc.gen = [
	10	0	0	Inf	-Inf	1.02	100	1	250	0;
	20	25	0	300	-300	1.01	100	1	250	0;
	20	15	0	300	-300	1.03	100	1	250	0;
	30	12	6	300	-300	1.2	100	1	250	0;
	40	70	0	300	-300	1.2	100	0	250	0;
	50	70	0	300	-300	1.2	100	1	250	0;
];

mpc.branch = [
	10	20	1	8	0.02	250	0	0	0	0	1	-360	360;
	20	30	1	9	0.03	0	0	0	0	-12.5	1	-360	360;  % shift, TAP = 0
	30	40	2	10	0	9900	0	0	0.97	3	1	-360	360;
	40	10	1	7	0	100	0	0	0	0	0	-360	360;      % out of service
	40	50	0	0	0	0	0	0	0	0	1	-360	360;      % to the isolated bus
	40	60	1	6	0	100	0	0	1.05	0	1	-360	360;
	40	60	1	6	0	100	0	0	1.05	0	1	-360	360;      % the same again
];

mpc.dcline = [
	30	60	0	8	7	1	2	0.99	1.005	0	10	-9	9	-9	9	0.5	0.05;
	10	40	0	8	7	1	2	0.99	1.005	0	10	-9	9	-9	9	0.5	0.05;
];

mpc.bus_name = {
	'one; [two'; 'it''s % no comment'; "three"; 'four'; 'five'; 'six'
};

[PQ, PV, REF, NONE, BUS_I, BUS_TYPE, PD, QD] = idx_bus;
[F_BUS, T_BUS, BR_R, BR_X] = idx_brch;
percent = 1e-2;  scale = 0;
mpc.branch(:, [BR_R BR_X]) = mpc.branch(:, [BR_R BR_X]) * percent;
mpc.bus(:, [PD, QD]) = mpc.bus(:, [PD, QD]) / ...
    1e3;
if scale
    mpc.bus(:, PD) = 2 * some_function(mpc.bus(:, PD));
end
